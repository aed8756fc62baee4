// Exits: calls that leave the code, and the rows that list the values they take along.
#include "jit/x64/emit_impl.h"

namespace uptier::jit::x64 {

// Leaves at the end of the code, or asks (for tests, each time; or if the poll word is set) and may
// come back.
//
//   cmp dword [poll], 0                   side: call ask_to_leave
//   jne side                                    jmp back
//   back:
void Emitter::leave(const MInst& i) {
  const Helpers& h = in_.compile.helpers;
  auto how = static_cast<Leaving>(i.sub);
  if (how == Leaving::kPolled) {
    if (in_.poll == nullptr) return;
    const Deopt& d = in_.function.deopts[m_.exits[i.exit].deopt];
    b_.compare_word_with_0(in_.poll + d.polls.index());
    sides_.push_back({b_.new_label(), &i, b_.new_label()});
    a_.jne(sides_.back().label);
    return b_.bind(sides_.back().back);
  }
  b_.call_address(how == Leaving::kAsked ? h.ask_to_leave : h.leave);
  exit_row(i);
}

void Emitter::leave_if(const MInst& i) {
  test(i);
  sides_.push_back({b_.new_label(), &i, {}});
  jump_on(i.cond, sides_.back().label);
}

void Emitter::exits() {
  auto first = in_.baseline_frame;
  b_.tables().saved.assign(saved_.begin(), saved_.end());
  b_.tables().saved_at = -static_cast<int32_t>(first) - 8;
  for (const Side& s : sides_) {
    b_.bind(s.label);
    if (!m_.origins.empty()) b_.first_line_row(m_.origins[s.from - m_.insts.data()]);
    undo_sum(*s.from);
    bool asks = s.from->op == MOp::kLeave;
    b_.call_address(asks ? in_.compile.helpers.ask_to_leave : in_.compile.helpers.leave);
    exit_row(*s.from);
    if (asks) a_.jmp(s.back);
  }
}

// Restores an operand that the exit needs, if the sum of the test was computed in its register.
void Emitter::undo_sum(const MInst& i) {
  if (i.op != MOp::kTrapIf || i.d == kNoOperand) return;
  auto lies_there = [&](const Operand& o) {
    return o.policy == Policy::kState && o.vreg.valid() && o.at == at(i, i.d);
  };
  if (std::ranges::none_of(m_.operands_of(i), lies_there)) return;
  AluOp back = i.test == Test::kAdd ? AluOp::kSub : AluOp::kAdd;
  Gp d = gp(gp_at(i, i.d), i.width == 8);
  if (i.form == Form::kRI) return alu_op(back, d, static_cast<int32_t>(i.imm));
  with(i, i.b, i.width, [&](const auto& s) { alu_op(back, d, s); });
}

// Adds the row of the call emitted last.
void Emitter::exit_row(const MInst& i) {
  const MExit& exit = m_.exits[i.exit];
  const Deopt& d = in_.function.deopts[exit.deopt];
  CodeTables& t = b_.tables();
  ExitRow row;
  row.offset = b_.offset();
  row.exit = d.exit;
  row.loc = i.loc.loc;
  row.reason = static_cast<GuardReason>(i.flags);
  row.in_loop = d.in_loop;
  row.to_host = d.to_host;
  row.polls = d.polls;
  row.frames_at = static_cast<uint32_t>(t.exit_frames.size());
  row.frames = static_cast<uint32_t>(d.frames.size());
  const MExitValue* next = m_.exit_values.data() + exit.values_at;
  for (const DeoptFrame& frame : d.frames) {
    auto values = static_cast<uint32_t>(frame.slots.size()) + frame.host_slots;
    auto at = static_cast<uint32_t>(t.exit_values.size());
    t.exit_frames.push_back({frame.body, frame.point, frame.pc, at, values});
    for (uint32_t n = 0; n < values; ++n) {
      ExitValue v = exit_value(i, *next++);
      bool slot = n < frame.slots.size();
      v.to = slot ? frame.slots[n] : static_cast<int32_t>(n - frame.slots.size());
      t.exit_values.push_back(v);
    }
  }
  t.exits.push_back(row);
}

ExitValue Emitter::exit_value(const MInst& i, const MExitValue& v) const {
  using From = ExitValue::From;
  bool wide = is_wide(v.type);
  if (v.operand == UINT32_MAX) return {From::kConstant, wide, 0, v.bits};
  Location at = m_.operands[i.operands_at + v.operand].at;
  if (at.is_slot()) {
    int64_t from = slot(at.index(), 8).offset();
    return {From::kFrame, wide, 0, static_cast<uint64_t>(from)};
  }
  bool xmm = class_of(at.index()) == RegClass::kFloat;
  return {xmm ? From::kXmm : From::kGp, wide, 0, at.index() & 15};
}

}  // namespace uptier::jit::x64
