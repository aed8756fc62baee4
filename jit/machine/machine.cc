#include "jit/machine/machine.h"

namespace uptier::jit::x64 {

RegMask clobbers(const MInst& i) {
  switch (i.op) {
    case MOp::kCall:
    case MOp::kCallIndirect:
    case MOp::kCallHost: return kCallClobbers;
    case MOp::kMulHigh:
    case MOp::kDiv: return mask_of(kRax) | mask_of(kRdx);
    case MOp::kBulk: {
      bool copies = static_cast<Opcode>(i.sub) == Opcode::kCopy;
      return mask_of(kRdi) | mask_of(kRcx) | mask_of(copies ? kRsi : kRax);
    }
    case MOp::kShiftVar: return i.flags != 0 ? mask_of(kRcx) : 0;
    default: return 0;
  }
}

}  // namespace uptier::jit::x64
