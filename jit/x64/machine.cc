#include "jit/x64/machine.h"

namespace uptier::jit::x64 {
namespace {

constexpr const char* kRegNames[kRegCount] = {
    "rax",  "rcx",  "rdx",  "rbx",  "rsp",   "rbp",   "rsi",   "rdi",   "r8",    "r9",   "r10",
    "r11",  "r12",  "r13",  "r14",  "r15",   "xmm0",  "xmm1",  "xmm2",  "xmm3",  "xmm4", "xmm5",
    "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"};

}  // namespace

const char* reg_name(unsigned reg) { return kRegNames[reg]; }

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
