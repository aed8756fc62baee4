// ParamValue: a parameter of a method, and the value that it is assumed to have.
#pragma once

#include <cstdint>

namespace uptier::jit {

struct ParamValue {
  uint32_t param = 0;  // from 0
  uint64_t bits = 0;   // of its type, zero-extended

  friend bool operator==(const ParamValue&, const ParamValue&) = default;
};

}  // namespace uptier::jit
