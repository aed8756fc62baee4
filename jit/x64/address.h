// AddressParts: an access as [base + index * 2^scale + offset], with what its index is made of.
//
// A shift by 1 to 3 and the addition of a constant go into the address when the sum is the same
// there: always for an i64 index, for an i32 index when it is known not to wrap around at 2^32, or
// when it makes no difference since both places fault (kMemFenced).
#pragma once

#include "jit/ir/function.h"

namespace uptier::jit::x64 {

struct AddressParts {
  Value base;
  Value index = Value::none();  // none: there is no index, or it is a constant
  uint8_t scale = 0;            // log2
  int64_t offset = 0;           // a u32 as it came; within int32 where anything was taken in
  bool taken = false;           // the index is not the access's own operand
};

// Pure; cost: constant.
AddressParts take_apart(const Function& f, const Inst& access);

}  // namespace uptier::jit::x64
