// Origin: the place in the host's program that an instruction comes from.
#pragma once

#include <cstdint>

namespace uptier::jit {

struct Origin {
  uint32_t loc = 0;   // the host's source location, of the body's method
  uint32_t body = 0;  // 0: the function's own body; k: entry k - 1 of its inlined bodies

  constexpr Origin() = default;
  constexpr Origin(uint32_t location, uint32_t of_body = 0) : loc(location), body(of_body) {}
  friend constexpr bool operator==(Origin, Origin) = default;
};

}  // namespace uptier::jit
