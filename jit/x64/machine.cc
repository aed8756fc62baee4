#include "jit/x64/machine.h"

namespace uptier::jit::x64 {
namespace {

constexpr const char* kRegNames[kRegCount] = {
    "rax",  "rcx",  "rdx",  "rbx",  "rsp",   "rbp",   "rsi",   "rdi",   "r8",    "r9",   "r10",
    "r11",  "r12",  "r13",  "r14",  "r15",   "xmm0",  "xmm1",  "xmm2",  "xmm3",  "xmm4", "xmm5",
    "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"};

constexpr const char* kOpNames[] = {
    "label",     "entry",         "load_frame", "mov",    "const",     "fconst",    "alu",
    "alu_trap",  "alu_overflow",  "mul_imm",    "neg",    "not",       "shift_imm", "shift_var",
    "lea",       "bits",          "extend",     "load",   "fload",     "store",     "fstore",
    "alu_store", "div",           "falu",       "funary", "fsign",     "convert",   "set",
    "select",    "trap_if",       "branch",     "jump",   "switch",    "return",    "trap",
    "call",      "call_indirect", "call_host",  "leave",  "load_slab", "count"};

std::string name(Location l) {
  switch (l.kind()) {
    case Location::Kind::kNone: return "";
    case Location::Kind::kReg: return reg_name(l.index());
    case Location::Kind::kSlot: return "[slot " + std::to_string(l.index()) + "]";
    case Location::Kind::kOutgoing: return "[out " + std::to_string(l.index()) + "]";
    case Location::Kind::kConstant: return "#" + std::to_string(l.index());
  }
  return "?";
}

std::string name(const Operand& o) {
  std::string s = o.role == Role::kDef ? "def " : o.role == Role::kLateUse ? "late " : "";
  s += o.vreg.valid() ? "v" + std::to_string(o.vreg.index()) : "c" + std::to_string(o.constant);
  if (o.policy == Policy::kAny) s += "?";
  if (o.policy == Policy::kState) s += "~";
  if (!o.at.is_none()) s += "=" + name(o.at);
  if (!o.fixed.is_none()) s += ":" + name(o.fixed);
  return s;
}

void print_inst(std::string& out, const MachineFunction& f, uint32_t n) {
  const MInst& i = f.insts[n];
  out += "  " + std::to_string(n) + ": " + kOpNames[static_cast<unsigned>(i.op)];
  out += "." + std::to_string(i.sub) + " w" + std::to_string(i.width);
  for (const Operand& o : f.operands_of(i)) out += ", " + name(o);
  if (i.base != kNoOperand) {
    out += " [" + std::to_string(i.base) + "+" + std::to_string(i.index) + "<<" +
           std::to_string(i.scale) + "+" + std::to_string(i.disp) + "]";
  }
  if (i.imm != 0) out += " imm " + std::to_string(static_cast<int64_t>(i.imm));
  for (const MEdge& e : f.edges_of(i)) {
    out += " ->" + std::to_string(e.to) + "(";
    for (uint32_t k = 0; k < f.blocks[e.to].params; ++k) {
      const MArg& a = f.edge_args[e.args_at + k];
      out += a.vreg.valid() ? " v" + std::to_string(a.vreg.index())
                            : " c" + std::to_string(a.constant);
    }
    out += ")";
  }
  out += "\n";
}

}  // namespace

const char* reg_name(unsigned reg) { return kRegNames[reg]; }

RegMask clobbers(const MInst& i) {
  switch (i.op) {
    case MOp::kCall:
    case MOp::kCallIndirect:
    case MOp::kCallHost: return kCallClobbers;
    case MOp::kMulHigh:
    case MOp::kDiv: return mask_of(kRax) | mask_of(kRdx);
    case MOp::kShiftVar: return i.flags != 0 ? mask_of(kRcx) : 0;
    default: return 0;
  }
}

std::string print(const MachineFunction& f) {
  std::string out;
  for (uint32_t b = 0; b < f.blocks.size(); ++b) {
    const MBlock& block = f.blocks[b];
    out += "block " + std::to_string(b) + " freq " + std::to_string(block.frequency) + " (";
    for (Vreg p : f.params_of(block)) out += " v" + std::to_string(p.index());
    out += ")\n";
    for (uint32_t n = block.begin; n < block.end; ++n) print_inst(out, f, n);
  }
  return out;
}

}  // namespace uptier::jit::x64
