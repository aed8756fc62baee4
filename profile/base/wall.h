// wall.h: where memory that is refused stops.
//
// The library's containers say it by std::bad_alloc, and so do others' code and a host's functions.
// Walls stand at each public function, at what compiled code and threads begin with, and in
// destructors; what is thrown behind a wall ends there, and becomes a Status, an empty answer, or
// nothing at all. Public functions stand behind a wall as a whole (a function-try-block).
//
// The law of whoever works behind a wall: an operation that ran out is dropped whole. What can be
// refused comes first; from the first change that others see on nothing is, or it does not matter
// (a table that is not told, code that is asked for again later).
#pragma once

#include <exception>
#include <utility>

#include "uptier/result.h"

namespace uptier {

// Returns the error of an operation that ran out of memory. Never fails: where there is none for
// words, it says less. `what`: the operation, as users call it.
Error out_of_memory(const char* what) noexcept;

// Runs `f`, which returns nothing. Returns whether it came to its end.
template <typename F>
bool finishes(F&& f) {
  try {
    std::forward<F>(f)();
    return true;
  } catch (const std::exception&) { return false; }
}

// Runs `f`, which returns a Status or a Result, and returns that, or that memory ran out.
template <typename F>
auto walled(const char* what, F&& f) -> decltype(f()) {
  try {
    return std::forward<F>(f)();
  } catch (const std::exception&) { return out_of_memory(what); }
}

}  // namespace uptier
