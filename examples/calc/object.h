// object.h: objects, shapes, and the arena that they live in.
//
// A Shape says what an object is. Records with the same fields, added in the same order, share one
// (a hidden class): "is this the shape that I saw last time" is one comparison, and tells where
// each field lies. All other objects of a kind share a single shape.
//
// Memory is a bump allocator with a limit and no collector. That keeps the example short, and
// nothing of the runtime depends on it: compiled code holds Vals in registers and in frames which
// the library does not describe, so a host with a moving collector keeps its roots in memory of its
// own (kRef is never looked into).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
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

struct String : Object {
  uint32_t length;
  char text[];  // not terminated
  std::string_view view() const { return {text, length}; }
};

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

struct Record : Object {
  static constexpr uint32_t kInline = 6;
  Val* more;  // slots from kInline on
  uint32_t more_capacity;
  Val slots[kInline];

  Val& slot(uint32_t i) { return i < kInline ? slots[i] : more[i - kInline]; }
};

struct Array : Object {
  Val* data;
  uint32_t length;
  uint32_t capacity;
};

// A variable that a closure has captured.
struct Cell : Object {
  Val value;
};

struct Proto;
struct Closure : Object {
  Proto* proto;
  Cell* cells[];
};

inline Kind kind_of(Val v) {
  return is_int(v) ? kInt : is_object(v) ? as_object(v)->shape->kind : kDouble;
}

// Owns every object. Allocation fails (null) when the limit is reached; the caller raises.
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
    return p;
  }
  size_t limit() const { return limit_; }

  String* string(std::string_view text);
  String* concat(std::string_view a, std::string_view b);
  String* intern(std::string_view text);
  Array* array(uint32_t length);
  Record* record(Shape* shape);
  Cell* cell(Val v);
  Closure* closure(Proto* proto, uint32_t cells);

  bool push(Array* a, Val v);
  // Gives a record one field more. Returns false when memory is out.
  bool add_field(Record* r, Shape* with, Val v);
  Shape* with_field(Shape* s, String* name);

  Val nil() const { return of_object(&nil_); }
  Val boolean(bool b) const { return of_object(b ? &true_ : &false_); }

  Shape string_shape{kString}, array_shape{kArray}, function_shape{kFunction},
      empty_record{kRecord};

 private:
  Shape nil_shape_{kNil}, bool_shape_{kBool};
  Object nil_{&nil_shape_}, false_{&bool_shape_}, true_{&bool_shape_};
  size_t limit_;
  char* base_;
  char* next_;
  char* end_;
  std::unordered_map<std::string, String*> interned_;
};

}  // namespace calc
