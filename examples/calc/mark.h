// mark.h: what a program can still reach.
//
// Exact where it is known what a word is: fields, elements, captured variables, globals, constants.
// Conservative where it is not: in registers and on the native stack, where the frames of compiled
// code lie among those of C++, and in the interpreter's registers. There a word counts as a
// reference if it is the address of any byte of a chunk in use, with the tag of a Val or without.
// So nobody describes frames, and nothing may move. docs/embedding.md, "A collector", has what
// compiled code promises for that.
#pragma once

#include "object.h"

namespace calc {

class Marker {
 public:
  explicit Marker(Arena& arena) : arena_(arena) {}

  void value(Val v) {
    if (is_object(v)) object(calc::object(v));
  }
  void object(Object* o);
  void cell(Cell* c);
  // Words that may be anything.
  void words(const uint64_t* begin, const uint64_t* end);
  // The calling thread's registers, and its stack up to `base`.
  void native_stack(const void* base);
  // Marks what the marked ones refer to.
  void finish();

 private:
  void word(uint64_t w);
  void members(Row& row);

  Arena& arena_;
  std::vector<Object*> open_;  // marked, and what they refer to is not
};

}  // namespace calc
