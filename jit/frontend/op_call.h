// op_call: which call of a builder makes an operation, for messages about one that was given to another.
#pragma once

#include "uptier/opcodes.h"

namespace uptier::jit {

// Returns the name that the call has in FunctionBuilder, and after uptier_build_ in C; null for what
// only the library makes.
const char* call_that_makes(Shape s) noexcept;

}  // namespace uptier::jit
