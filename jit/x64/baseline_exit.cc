// Entries in the middle of a body, and exits.
//
//   entry:  after the body, for each point where registers hold values: load them; jmp point
//   exit:   after the body, for each guard: call leave; its return address identifies the row;
//           for tests a second one: call ask_to_leave; jmp back
#include "jit/x64/baseline_assembler.h"

#include <utility>

namespace uptier::jit::x64 {

void BaselineAssembler::mark_entry(uint32_t point, bool held) {
  Entry e{point, b_.new_label(), {}, held};
  b_.bind(e.at);
  for (const ValueCache::Cached& c : values_.cached()) {
    bool in_frame = in_.frame.slot[c.value.index()] != 0;
    if (in_frame || values_.is_constant(c.value)) e.cached.push_back(c);
  }
  entries_.push_back(std::move(e));
}

void BaselineAssembler::emit_entries(uint32_t call_points) {
  if (!in_.enterable) return;
  auto& offsets = b_.tables().entries;
  offsets.assign(call_points, 0);
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

void BaselineAssembler::leave_unless(Condition c, const ExitPlace& place,
                                     std::span<const Value> values, bool held, bool asks) {
  SiteId site = b_.tables().probes.empty() ? 0 : b_.tables().probes.back().site;
  Exit e{b_.new_label(), place, site, {}, held};
  for (Value v : values) e.values.push_back(place_of(v));
  emit_jump_if(b_, negate(c), e.at);
  if (asks) {
    Exit asking = e;
    asking.at = b_.new_label();
    asking.back = b_.new_label();
    a_.jmp(asking.at);
    b_.bind(asking.back);
    exits_.push_back(std::move(asking));
  }
  for (Value v : values) values_.use(v);
  exits_.push_back(std::move(e));
}

ExitValue BaselineAssembler::place_of(Value v) const {
  using From = ExitValue::From;
  bool wide = is_wide(values_.type_of(v));
  if (values_.is_constant(v)) return {From::kConstant, wide, 0, values_.constant_bits(v)};
  if (!values_.in_register(v)) {
    return {From::kFrame, wide, 0, static_cast<uint64_t>(int64_t{values_.home(v)})};
  }
  unsigned reg = values_.register_of(v);
  return {reg >= 16 ? From::kXmm : From::kGp, wide, 0, reg & 15};
}

void BaselineAssembler::emit_exits() {
  CodeTables& t = b_.tables();
  for (Exit& e : exits_) {
    b_.bind(e.at);
    if (t.counts_edges) b_.probe_row(e.site);
    if (e.held) store_countdown();
    bool asks = e.back.isValid();
    b_.call_address(asks ? in_.helpers.ask_to_leave : in_.helpers.leave);
    const ExitPlace& p = e.place;
    ExitRow row{b_.offset(), p.exit, p.loc.loc, p.reason};
    row.in_loop = p.in_loop;
    row.to_host = true;
    row.frames_at = static_cast<uint32_t>(t.exit_frames.size());
    row.frames = 1;
    t.exits.push_back(row);
    t.exit_frames.push_back({0, p.point, p.pc, static_cast<uint32_t>(t.exit_values.size()),
                             static_cast<uint32_t>(e.values.size())});
    int32_t slot = 0;
    for (ExitValue& v : e.values) {
      v.to = slot++;
      t.exit_values.push_back(v);
    }
    if (asks) a_.jmp(e.back);
  }
}

}  // namespace uptier::jit::x64
