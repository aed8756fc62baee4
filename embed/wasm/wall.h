// wall.h: where memory that is refused stops: what std::bad_alloc is thrown for by containers, wabt and
// the runtime's builder becomes a Status at the public functions of the engine.
#pragma once

#include <exception>
#include <utility>

#include "uptier/result.h"

namespace uptier::wasm {

// Never fails; the words fit into the string itself.
inline Error out_of_memory() noexcept { return {ErrorCode::kResourceExhausted, "out of memory"}; }

// Runs `f`, which returns nothing. Returns whether it came to its end.
template <typename F>
bool finishes(F&& f) {
  try {
    std::forward<F>(f)();
    return true;
  } catch (const std::exception&) { return false; }
}

}  // namespace uptier::wasm
