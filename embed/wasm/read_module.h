// read_module.h: bytes in, a validated ModuleInfo out. The only door to the library that parses.
#pragma once

#include "embed/wasm/module_info.h"
#include "uptier/result.h"

namespace uptier::wasm {

// Parses and validates a module of the binary format; keeps `bytes`, which must not change.
//
// Errors: kCorruptInput for a malformed module, kInvalidInput for one that breaks a validation
// rule, kUnsupported for a valid one past this engine's limits. Messages begin with "at offset
// 0x..". Cost: linear in the size, for bodies divided by up to 8 threads; no recursion, however
// deep the blocks nest.
//
// With Bodies::kLater everything but the bodies is validated: each must pass BodyValidator before
// it is built, as it does in a Module.
Result<ModuleInfo> read_module(ModuleBytes bytes, Bodies bodies = Bodies::kValidated);

}  // namespace uptier::wasm
