// The register allocator's questions about instructions, answered for x86-64: see
// machine/machine.h.
#include "jit/x64/instructions.h"

namespace uptier::jit::machine {

RegMask clobbers(const MInst& i) {
  switch (i.op) {
    case MOp::kCall:
    case MOp::kCallIndirect:
    case MOp::kCallHost: return kCallClobbers;
    case MOp::kMulHigh:
    case MOp::kDiv: return mask_of(x64::kRax) | mask_of(x64::kRdx);
    case MOp::kBulk: {
      bool copies = static_cast<Opcode>(i.sub) == Opcode::kCopy;
      return mask_of(x64::kRdi) | mask_of(x64::kRcx) | mask_of(copies ? x64::kRsi : x64::kRax);
    }
    case MOp::kShiftVar: return i.flags != 0 ? mask_of(x64::kRcx) : 0;
    default: return 0;
  }
}

// A two-address instruction wants its result in the register of a source.
std::array<SharedWith, 2> shares_register(const MachineFunction& m, const MInst& i) {
  const Operand* o = m.operands.data() + i.operands_at;
  auto sources = [&](float first, float second) {
    std::array<SharedWith, 2> s;
    if (i.a != kNoOperand) s[0] = {i.a, first};
    if (i.b != kNoOperand && o[i.b].role == Role::kUse) s[1] = {i.b, second};
    return s;
  };
  switch (i.op) {
    case MOp::kMov:
    case MOp::kAlu:
    case MOp::kAluTrap:
    case MOp::kTrapIf:
    case MOp::kNeg:
    case MOp::kNot:
    case MOp::kShiftImm:
    case MOp::kExtend:
    case MOp::kFSign: return sources(1, 0.9f);
    case MOp::kFAlu: return sources(0.2f, 0.1f);  // AVX has three addresses
    case MOp::kSelect: return {{{i.y, 1}, {i.x, 0.9f}}};
    default: return {};
  }
}

bool needs_frame(const MInst& i) {
  switch (i.op) {
    case MOp::kCall:
    case MOp::kCallIndirect:
    case MOp::kCallHost:
    case MOp::kLeave:
    case MOp::kLoadFrame:
    case MOp::kLoadSlab:
    case MOp::kCount:
    case MOp::kObserve: return true;
    default: return i.exit != UINT32_MAX;
  }
}

bool is_return(const MInst& i) { return i.op == MOp::kReturn; }
bool is_jump(const MInst& i) { return i.op == MOp::kJump; }

}  // namespace uptier::jit::machine
