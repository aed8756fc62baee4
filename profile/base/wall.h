// wall.h: where refused memory is caught.
//
// The library's containers report refused memory by std::bad_alloc; so do other libraries' code and
// a host's functions. There are walls at each public function, at the entry functions of compiled
// code and threads, and in destructors. A wall catches the exception and turns it into a Status, an
// empty answer, or nothing at all. Public functions are inside a wall as a whole (a
// function-try-block).
//
// The law for code inside a wall: an operation that runs out of memory has no effect at all.
// Allocations come first. After the first change that others can see, nothing can be refused, or it
// does not matter (a table that misses an entry, code that is requested again later).
#pragma once

#include <exception>
#include <utility>

#include "uptier/result.h"

namespace uptier {

// Returns the error of an operation that ran out of memory. Never fails: if there is no memory for
// the message, it is shorter. `what`: the operation, as users call it.
Error out_of_memory(const char* what) noexcept;

// Runs `f`, which returns nothing. Returns whether it completed.
template <typename F>
bool finishes(F&& f) {
  try {
    std::forward<F>(f)();
    return true;
  } catch (const std::exception&) { return false; }
}

// Runs `f`, which returns a Status or a Result. Returns its result, or the error that memory ran
// out.
template <typename F>
auto walled(const char* what, F&& f) -> decltype(f()) {
  try {
    return std::forward<F>(f)();
  } catch (const std::exception&) { return out_of_memory(what); }
}

}  // namespace uptier
