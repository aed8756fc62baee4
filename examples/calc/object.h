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
inline constexpr unsigned kNumber = kInt | kDouble, kAnyKind = 255;

struct String;
struct Shape {
  Kind kind;
  std::vector<String*> fields = {};                     // of a record: names by slot, interned
  std::map<String*, std::unique_ptr<Shape>> then = {};  // with one field more

  // Returns the slot of a field, or -1.
  int find(const String* name) const;
};
inline Shape string_shape{kString}, array_shape{kArray}, function_shape{kFunction};

struct Object {
  Shape* shape;  // first in every object
};

struct String : Object {
  uint32_t length;
  char text[];  // not terminated
  std::string_view view() const { return {text, length}; }
};

// An array and its elements, or a record and its fields.
struct Row : Object {
  uint32_t length;
  uint32_t capacity;
  Val* data;
};

// A variable that a closure has captured. Registers hold pointers to cells, no Vals.
struct Cell {
  Val value;
};

struct Proto;
struct Closure : Object {
  Proto* proto;
  Cell* cells[];
};

inline Object* object(Val v) { return reinterpret_cast<Object*>(v - kObjectTag); }
inline Kind kind_of(Val v) {
  if (is_double(v)) return kDouble;
  if (is_int(v)) return kInt;
  return is_object(v) ? object(v)->shape->kind : v == kNilVal ? kNil : kBool;
}
// Each returns the object if it is of the kind, else null.
template <typename T>
T* as(Val v, Kind kind) {
  return is_object(v) && object(v)->shape->kind == kind ? static_cast<T*>(object(v)) : nullptr;
}
inline String* as_string(Val v) { return as<String>(v, kString); }
inline Row* as_array(Val v) { return as<Row>(v, kArray); }
inline Row* as_record(Val v) { return as<Row>(v, kRecord); }
inline Closure* as_closure(Val v) { return as<Closure>(v, kFunction); }

// Owns every object. What allocates returns null when the limit is reached; the caller raises.
class Heap {
 public:
  explicit Heap(size_t limit_bytes);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  size_t limit() const { return limit_; }
  String* concat(std::string_view a, std::string_view b);
  String* intern(std::string_view text);
  Row* row(Shape* shape, uint32_t length, Val fill);
  Closure* closure(Proto* proto, size_t cells);
  Cell* cell(Val v);

  bool push(Row* row, Val v);
  Shape* with_field(Shape* s, String* name);

  Shape empty_record{kRecord};

 private:
  void* allocate(size_t bytes);
  void prepare();

  size_t limit_;
  char *base_, *next_, *ready_, *end_;
  std::map<std::string, String*, std::less<>> interned_;
};

}  // namespace calc
