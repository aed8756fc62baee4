// object.h: objects, shapes, and the arena that they live in.
//
// A Shape says what an object is. Records with the same fields, added in the same order, share one
// (a hidden class): "is this the shape that I saw last time" is one comparison, and tells where
// each field lies. All other objects of a kind share a single shape.
//
// Memory is a bump allocator with a limit and no collector. That keeps the example short, and
// nothing of the runtime depends on it: compiled code holds pointers in registers and in frames
// which the library does not describe, so a host with a moving collector keeps its roots in memory
// of its own (kRef is never looked into).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "value.h"

namespace calc {

// Kinds of values, one bit each, so that a byte can say which were seen.
enum Kind : uint8_t {
  kInt = 1,
  kDouble = 2,
  kNil = 4,
  kBool = 8,
  kString = 16,
  kArray = 32,
  kRecord = 64,
  kFunction = 128,
};

struct String;
struct Shape {
  Kind kind;
  std::vector<String*> fields = {};                     // of a record: names by slot, interned
  std::map<String*, std::unique_ptr<Shape>> then = {};  // with one field more

  // Returns the slot of a field, or -1.
  int find(const String* name) const {
    for (size_t i = 0; i < fields.size(); ++i) {
      if (fields[i] == name) return static_cast<int>(i);
    }
    return -1;
  }
};

struct Object {
  Shape* shape;  // first in every object
};

struct String : Object {
  static inline Shape kShape{kString};
  uint32_t length;
  char text[];  // not terminated
  std::string_view view() const { return {text, length}; }
};

struct Record : Object {
  static constexpr uint32_t kInline = 8;
  Val* more;  // slots from kInline on
  uint32_t more_capacity;
  Val slots[kInline];

  Val& slot(uint32_t i) { return i < kInline ? slots[i] : more[i - kInline]; }
};

struct Array : Object {
  static inline Shape kShape{kArray};
  Val* data;
  uint32_t length;
  uint32_t capacity;
};

// A variable that a closure has captured. Registers hold pointers to cells, no Vals.
struct Cell {
  Val value;
};

struct Proto;
struct Closure : Object {
  static inline Shape kShape{kFunction};
  Proto* proto;
  Cell* cells[];
};

inline Shape* shape_of(Val v) {
  return is_object(v) ? reinterpret_cast<Object*>(v - kObjectTag)->shape : nullptr;
}
// Returns the object if it is of the type, else null.
template <typename T>
T* as(Val v) {
  return shape_of(v) == &T::kShape ? reinterpret_cast<T*>(v - kObjectTag) : nullptr;
}
template <>
inline Record* as<Record>(Val v) {
  Shape* s = shape_of(v);
  return s != nullptr && s->kind == kRecord ? reinterpret_cast<Record*>(v - kObjectTag) : nullptr;
}
inline Kind kind_of(Val v) {
  if (is_double(v)) return kDouble;
  if (is_int(v)) return kInt;
  return is_object(v) ? shape_of(v)->kind : v == kNilVal ? kNil : kBool;
}

// Owns every object. What allocates returns null when the limit is reached; the caller raises.
class Heap {
 public:
  explicit Heap(size_t limit_bytes);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  void* allocate(size_t bytes) {
    bytes = (bytes + 15) & ~size_t{15};
    if (bytes > static_cast<size_t>(end_ - next_)) return nullptr;
    char* p = next_;
    next_ += bytes;
    if (next_ > ready_) prepare();
    return p;
  }
  size_t limit() const { return limit_; }

  String* concat(std::string_view a, std::string_view b);
  String* intern(std::string_view text);
  Array* array(uint32_t length, Val fill);
  Record* record(Shape* shape);  // fields are unset
  Closure* closure(Proto* proto, size_t cells);

  bool push(Array* a, Val v);
  bool add_field(Record* r, Shape* with, Val v);
  Shape* with_field(Shape* s, String* name);

  Shape empty_record{kRecord};

 private:
  void prepare();
  bool grow(Val*& data, uint32_t& capacity, uint32_t wanted);

  size_t limit_;
  char *base_, *next_, *ready_, *end_;
  std::map<std::string, String*, std::less<>> interned_;
};

}  // namespace calc
