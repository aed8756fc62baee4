// AddressParts: an access as [base + index * 2^scale + offset], with parts of its index's
// definition folded in.
//
// A shift by 1 to 3 and the addition of a constant are folded into the address if the sum stays the
// same: always for an i64 index, and for an i32 index if it is known not to wrap around at 2^32, or
// if wrapping makes no difference because both places fault (kMemFenced).
#pragma once

#include "jit/ir/function.h"

namespace uptier::jit::x64 {

struct AddressParts {
  Value base;
  Value index = Value::none();  // none: there is no index, or it is a constant
  uint8_t scale = 0;            // log2
  int64_t offset = 0;           // the access's own u32; within int32 if anything was folded in
  bool taken = false;  // something was folded in: the index is not the access's own operand
};

// Returns an upper bound of an i32, from its definition and the definitions of its operands; UINT32_MAX
// if nothing is known. Pure; cost: constant.
uint64_t greatest_of(const Function& f, Value v);

// Pure; cost: constant.
AddressParts take_apart(const Function& f, const Inst& access);

}  // namespace uptier::jit::x64
