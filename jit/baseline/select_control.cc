// Blocks' beginnings and ends: probes, terminators.
#include <algorithm>

#include "jit/baseline/selector.h"
#include "sampler/context.h"

namespace uptier::jit::baseline {

// ---- Probes -----------------------------------------------------------------------------------

void Selector::load_slab() {
  a_.mov(kScratch, b_.method_word(kScratch, in_.method, sampler::kSlabOffset, 8));
  a_.mov(x86::qword_ptr(x86::rbp, kSlabSlot), kScratch);
}

void Selector::probe(const Inst& i) {
  if (probe_kind(i) != ProbeKind::kBlock) return host_probe(i);
  b_.probe_row(i.aux);
  if (instrumented_) count_block(i.aux);
}

// ---- Terminators ------------------------------------------------------------------------------

bool Selector::needs_move(Value arg, Value param) const {
  if (values_.is_constant(arg)) return true;
  return values_.home(arg) != frame_.slot[param.index()] || values_.is_dirty(arg);
}

bool Selector::has_moves(const Edge& e) const {
  auto args = f_.list(e.args);
  auto params = f_.params(e.to);
  for (size_t n = 0; n < args.size(); ++n) {
    if (needs_move(args[n], params[n])) return true;
  }
  return false;
}

// Everything is a register's or a slot's when the probes come; they keep both.
void Selector::emit_edge(const Edge& e) {
  cross_loops(e);
  count_along(e);
  cross_held(e);
  emit_moves(e);
}

// Ends the block along an edge: its code, then a jump unless the target follows.
void Selector::go_to(const Edge& e) {
  emit_edge(e);
  if (!is_next(e.to)) jump_to(e.to);
}

// Sets `target` to where a jump along `e` goes: the block itself, or a stub with the edge's code.
void Selector::edge_or_stub(const Edge& e, std::vector<EdgeStub>& stubs, Label& target) {
  if (!has_code(e)) {
    target = label(e.to);
    return;
  }
  target = b_.new_label();
  stubs.push_back({target, &e});
}

void Selector::jump(const Inst& i) {
  values_.flush();
  go_to(f_.edges_of(i)[0]);
}

void Selector::branch(const Inst& i) {
  values_.flush();
  Condition c = condition(f_.args(i)[0]);
  const Edge* far = &f_.edges_of(i)[0];
  const Edge* near = &f_.edges_of(i)[1];
  // The jump goes along `far`. The code of `near` is skipped by the jump; when both edges have
  // some, `far` has a stub behind them, which may fall into the next block.
  bool far_code = has_code(*far), near_code = has_code(*near);
  bool swap = far_code != near_code ? far_code : is_next(far_code ? near->to : far->to);
  if (swap) {
    std::swap(far, near);
    std::swap(far_code, near_code);
    c = negate(c);
  }
  if (!far_code) {
    emit_jump_if(b_, c, label(far->to));
    return go_to(*near);
  }
  Label stub = b_.new_label();
  emit_jump_if(b_, c, stub);
  emit_edge(*near);
  jump_to(near->to);
  b_.bind(stub);
  go_to(*far);
}

void Selector::switch_on(const Inst& i) {
  values_.flush();
  auto edges = f_.edges_of(i);
  std::vector<EdgeStub> stubs;
  std::vector<Label> targets(edges.size());
  for (size_t n = 0; n < edges.size(); ++n) edge_or_stub(edges[n], stubs, targets[n]);
  constexpr size_t kChain = 4;  // cases up to which comparing is at least as short as the table
  Value index = f_.args(i)[0];
  if (edges.size() - 1 <= kChain) {
    Gp r = values_.gp_of(index).r32();
    for (size_t n = 0; n + 1 < edges.size(); ++n) {
      n == 0 ? a_.test(r, r) : a_.cmp(r, imm(n));
      a_.je(targets[n]);
    }
    values_.use(index);
    a_.jmp(targets.back());
  } else {
    jump_through_table(i, std::move(targets));
  }
  for (const EdgeStub& s : stubs) {
    b_.bind(s.at);
    emit_edge(*s.edge);
    jump_to(s.edge->to);
  }
}

void Selector::jump_through_table(const Inst& i, std::vector<Label> targets) {
  Value index = f_.args(i)[0];
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

void Selector::return_value(const Inst& i) {
  if (i.args.size != 0) {
    Value v = f_.args(i)[0];
    unsigned reg = is_float(values_.type_of(v)) ? 16u : unsigned{Gp::kIdAx};
    if (values_.register_of(v) != reg) values_.copy_to(reg, v);
    values_.use(v);
  }
  count_return();
  leave_all_loops();
  if (held(current_)) store_countdown();
  a_.leave();
  a_.ret();
}

}  // namespace uptier::jit::baseline
