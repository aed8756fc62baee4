// Ways into the middle of a body, and ways out of it.
//
//   in:   behind the body, for each point where registers hold values: loads of those; jmp point
//   out:  behind the body, for each guard: call leave, whose return address finds the exit's row;
//         for tests once more: call ask_to_leave; jmp back
#include "jit/baseline/selector.h"

namespace uptier::jit::baseline {

// ---- In ---------------------------------------------------------------------------------------

// Marks the place that has been reached as a point. What registers hold is in the frame too, if it
// is needed: live values have canonical slots there.
void Selector::mark_entry(uint32_t point) {
  // Nobody leaves for the entry.
  if (!request_.enterable || point == 0) return;
  Entry e{point, b_.new_label(), {}, held(current_)};
  b_.bind(e.at);
  for (const ValueCache::Cached& c : values_.cached()) {
    bool in_frame = frame_.slot[c.value.index()] != 0;
    if (in_frame || values_.is_constant(c.value)) e.cached.push_back(c);
  }
  entries_.push_back(std::move(e));
}

// A frame_state that guards leave to is a point.
void Selector::frame_state(const Inst& i) {
  bool is_point = next_state_ < states_.size() && &f_.inst(states_[next_state_].state) == &i;
  if (is_point) mark_entry(states_[next_state_++].point);
}

void Selector::emit_entries() {
  if (!request_.enterable) return;
  auto& offsets = b_.tables().entries;
  offsets.assign(first_call_point(f_, states_.size()), 0);
  offsets.insert(offsets.end(), returns_.begin(), returns_.end());
  for (const Entry& e : entries_) {
    bool straight = e.cached.empty() && !e.held;
    offsets[e.point] = straight ? b_.offset_of(e.at) : b_.offset();
    if (straight) continue;
    for (const ValueCache::Cached& c : e.cached) values_.load_home(c.reg, c.value);
    if (e.held) load_countdown();
    a_.jmp(e.at);
  }
}

// ---- Out --------------------------------------------------------------------------------------

void Selector::guard(const Inst& i) {
  auto args = f_.args(i);
  Condition c = condition(args[0]);
  if (i.imm == 0) {
    emit_jump_if(b_, negate(c), b_.trap_label(TrapCode::kGuardFailed, i.loc));
    return;
  }
  Exit e{b_.new_label(),
         &i,
         b_.tables().probes.empty() ? 0 : b_.tables().probes.back().site,
         {},
         held(current_)};
  for (Value v : args.subspan(1)) e.values.push_back(place_of(v));
  emit_jump_if(b_, negate(c), e.at);
  if (request_.ask_to_leave) {
    Exit asks = e;
    asks.at = b_.new_label();
    asks.back = b_.new_label();
    a_.jmp(asks.at);
    b_.bind(asks.back);
    exits_.push_back(std::move(asks));
  }
  for (Value v : args.subspan(1)) values_.use(v);
  exits_.push_back(std::move(e));
}

ExitValue Selector::place_of(Value v) const {
  using From = ExitValue::From;
  bool wide = is_wide(values_.type_of(v));
  if (values_.is_constant(v)) return {From::kConstant, wide, 0, values_.constant_bits(v)};
  if (!values_.in_register(v)) {
    return {From::kFrame, wide, 0, static_cast<uint64_t>(int64_t{values_.home(v)})};
  }
  unsigned reg = values_.register_of(v);
  return {reg >= 16 ? From::kXmm : From::kGp, wide, 0, reg & 15};
}

void Selector::emit_exits() {
  CodeTables& t = b_.tables();
  for (Exit& e : exits_) {
    b_.bind(e.at);
    if (t.counts_edges) b_.probe_row(e.site);
    if (e.held) store_countdown();
    bool asks = e.back.isValid();
    b_.call_address(asks ? in_.helpers.ask_to_leave : in_.helpers.leave);
    const Deopt& d = f_.deopts[e.guard->imm - 1];
    ExitRow row{b_.offset(), d.exit, e.guard->loc, static_cast<GuardReason>(e.guard->aux)};
    row.in_loop = d.in_loop;
    row.to_host = true;
    row.frames_at = static_cast<uint32_t>(t.exit_frames.size());
    row.frames = 1;
    t.exits.push_back(row);
    t.exit_frames.push_back({0, d.frames[0].point, d.frames[0].pc,
                             static_cast<uint32_t>(t.exit_values.size()),
                             static_cast<uint32_t>(e.values.size())});
    int32_t slot = 0;
    for (ExitValue& v : e.values) {
      v.to = slot++;
      t.exit_values.push_back(v);
    }
    if (asks) a_.jmp(e.back);
  }
}

}  // namespace uptier::jit::baseline
