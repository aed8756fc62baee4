// object.h: objects, shapes, and the heap that they live in.
//
// A Shape says what an object is. Records with the same fields, added in the same order, share one
// (a hidden class): "is this the shape that I saw last time" is one comparison, and tells where
// each field lies. All other objects of a kind share a single shape.
//
// Objects that nothing refers to are found by a collector (arena.h). It looks for references
// in all registers and the whole native stack, so code that holds one there says nothing to
// anybody, compiled code included; and it moves nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "arena.h"
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

// An array or a record. Its elements or fields lie right after it until they outgrow that place.
struct Row : Object {
  uint32_t length;
  uint32_t capacity;
  Val* data;
  Val* inside() { return reinterpret_cast<Val*>(this + 1); }
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

// Owns every object. Functions that allocate return null when the limit is reached; the caller
// raises the error. They may collect first: a pointer that is used afterwards must be in a local
// variable, an argument, or a root that `roots` reaches, and a new object must be filled before the
// next allocation.
class Heap : public Arena {
 public:
  using Arena::Arena;

  std::function<void()> roots;         // reaches all roots except interned strings
  const class Trace* trace = nullptr;  // is told of collections, unless it is null

  String* concat(std::string_view a, std::string_view b);
  String* intern(std::string_view text);
  Row* row(Shape* shape, uint32_t length, Val fill);
  Closure* closure(Proto* proto, size_t cells);
  Cell* cell(Val v);

  bool push(Row* row, Val v);
  Shape* with_field(Shape* s, String* name);

  Shape empty_record{kRecord};

 private:
  void reach_roots() override;
  uint64_t collection_begins(size_t in_use) override;
  void collection_ends(uint64_t told, size_t in_use, size_t found_dead) override;

  std::map<std::string, String*, std::less<>> interned_;
};

}  // namespace calc
