// op_call: the builder call that makes an operation, for messages about an opcode given to the
// wrong call.
#pragma once

#include "uptier/opcodes.h"

namespace uptier::jit {

// Returns the name of the call in FunctionBuilder, and after uptier_build_ in C; null for
// operations that only the library makes.
const char* call_that_makes(Shape s) noexcept;

}  // namespace uptier::jit
