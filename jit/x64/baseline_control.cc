// Switches and returns.
#include "jit/x64/baseline_assembler.h"

namespace uptier::jit::x64 {

void BaselineAssembler::switch_chain(Value index, std::span<const Label> targets) {
  Gp r = values_.gp_of(index).r32();
  for (size_t n = 0; n + 1 < targets.size(); ++n) {
    n == 0 ? a_.test(r, r) : a_.cmp(r, imm(n));
    a_.je(targets[n]);
  }
  values_.use(index);
  a_.jmp(targets.back());
}

void BaselineAssembler::switch_table(Value index, std::vector<Label> targets) {
  Gp n = values_.index_of(index);
  Gp start = values_.new_gp();
  Label otherwise = targets.back();
  targets.pop_back();
  a_.cmp(n.r32(), imm(targets.size()));
  a_.jae(otherwise);
  tables_.push_back({b_.new_label(), std::move(targets)});
  a_.lea(start, x86::ptr(tables_.back().at));
  a_.movsxd(kScratch, x86::dword_ptr(start, n, 2));
  a_.add(kScratch, start);
  b_.jump_untracked(kScratch);
  values_.use(index);
}

void BaselineAssembler::set_result(Value v) {
  unsigned reg = is_float(values_.type_of(v)) ? 16u : unsigned{Gp::kIdAx};
  if (values_.register_of(v) != reg) values_.copy_to(reg, v);
  values_.use(v);
}

void BaselineAssembler::leave_frame() {
  a_.leave();
  a_.ret();
}

// A table holds distances from its own start, so it needs no relocation.
void BaselineAssembler::emit_tables() {
  for (const JumpTable& t : tables_) {
    a_.align(asmjit::AlignMode::kData, 4);
    b_.bind(t.at);
    auto start = static_cast<int32_t>(b_.offset());
    for (const Label& l : t.targets) {
      int32_t distance = static_cast<int32_t>(b_.offset_of(l)) - start;
      a_.embed(&distance, sizeof distance);
    }
  }
}

}  // namespace uptier::jit::x64
