#include "tiering/runtime/loop_reports.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <utility>

#include "jit/analysis/loop_forest.h"
#include "profile/data/loop_nest.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/model/positions.h"
#include "tiering/model/thread.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"

namespace uptier::tiering {
namespace {

SiteId site_of(const Method& m, LoopId loop) {
  return (loop.valid() ? loop.index() : m.shape->loop_count) + 1;
}

// Executions whose end was not seen are assumed to take as long as the others.
std::optional<double> exact_cycles(const Method& m, uint32_t loop, double entries) {
  double timed = 0, cycles = 0;
  for (const auto& [thread, s] : m.flushed->streams) {
    if (loop >= s.executions.size()) continue;
    timed += static_cast<double>(s.executions[loop].timed);
    cycles += static_cast<double>(s.executions[loop].cycles);
  }
  if (timed == 0) return std::nullopt;
  return cycles * entries / timed;
}

LoopReport loop_report_of(const Method& m, const TimedLoop& t, const MethodProfile& p)
    UPTIER_REQUIRES(state_lock) {
  LoopReport r;
  r.method = m.id;
  r.key = m.info.key;
  r.name = m.info.name;
  r.loop = t.loop;
  r.parent = t.parent;
  r.depth = t.depth;
  r.height = t.height;
  if (t.location != 0) {
    r.location = t.location;
    r.source = positions_of(m, t.location);
  }
  SiteId site = site_of(m, t.loop);
  for (const jit::LoopRange& range : m.shape->loop_ranges) {
    if (range.loop + 1 != site) continue;
    r.start_offset = range.begin;
    r.end_offset = range.end;
  }
  const Slot* slot = p.schema.find(SlotKind::kLoop, site);
  if (slot == nullptr) return r;
  r.entries = static_cast<double>(p.estimates[slot->word + slot_word::kLoopEntries]);
  r.iterations = static_cast<double>(p.estimates[slot->word + slot_word::kLoopIterations]);
  r.timed = p.counts[slot->word + slot_word::kLoopTimed];
  r.cycles = p.loop_cycles(site);
  // The first execution has not ended; other executions may be inside of it.
  if (r.entries == 0 && r.iterations > 0) r.cycles.reset();
  r.exact_cycles = exact_cycles(m, site - 1, r.entries);
  return r;
}

// Makes the cycles of a method's loops consistent. If nothing is known of a loop, its inner loops
// count as inside the next outer one. `per_execution`: the error of one execution, in cycles.
void settle_cycles(const Method& m, double per_execution, std::vector<LoopReport>& loops) {
  assert(loops.size() == m.shape->timed_loops.size());
  std::vector<uint32_t> place(loops.size(), UINT32_MAX);
  std::vector<profile::NestedLoop> nest;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (!loops[i].cycles) continue;
    place[i] = static_cast<uint32_t>(nest.size());
    nest.push_back({*loops[i].cycles, loops[i].entries});
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    if (place[i] == UINT32_MAX) continue;
    uint32_t up = m.shape->timed_loops[i].within;
    while (up != UINT32_MAX && place[up] == UINT32_MAX) up = m.shape->timed_loops[up].within;
    if (up != UINT32_MAX) nest[place[i]].within = place[up];
  }
  profile::settle_nest(nest, per_execution);
  for (size_t i = 0; i < loops.size(); ++i) {
    if (place[i] != UINT32_MAX) loops[i].cycles = nest[place[i]].cycles;
  }
}

// Adds the reports of a method's loops. `off`: the error of one execution, in cycles.
void add_loops(const Method& m, const MethodProfile& p, double off, std::vector<LoopReport>& out)
    UPTIER_REQUIRES(state_lock) {
  std::vector<LoopReport> loops;
  for (const TimedLoop& t : m.shape->timed_loops) loops.push_back(loop_report_of(m, t, p));
  settle_cycles(m, off, loops);
  for (LoopReport& r : loops) {
    if (r.cycles) r.exclusive_cycles = r.cycles->total;
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    uint32_t within = m.shape->timed_loops[i].within;
    if (within == UINT32_MAX || !loops[within].exclusive_cycles || !loops[i].cycles) continue;
    double& rest = *loops[within].exclusive_cycles;
    rest = std::max(rest - loops[i].cycles->total, 0.0);
  }
  std::move(loops.begin(), loops.end(), std::back_inserter(out));
}

double total_of(const LoopReport& r) { return r.cycles ? r.cycles->total : 0; }

}  // namespace

Status LoopReports::set_loop_meter(const LoopMeter& meter) {
  if (engine_.forked()) return engine_.forked_error();
  HeldState lock(engine_.state_mutex);
  if ((meter.begin == nullptr) != (meter.end == nullptr)) {
    return Error{ErrorCode::kInvalidArgument,
                 "set_loop_meter: give both begin and end, or neither"};
  }
  if (engine_.threads.last_number() != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "set_loop_meter: a thread has attached already, and its loops have other units"};
  }
  engine_.loop_meter = meter;
  if (meter.begin == nullptr) engine_.loop_meter.unit = LoopMeter().unit;
  return {};
}

void LoopReports::keep_loop_executions(uint32_t count) {
  constexpr uint32_t kMost = 1u << 20;
  HeldState lock(engine_.state_mutex);
  engine_.first_loops = std::min(count, kMost);
}

std::vector<LoopExecution> LoopReports::loop_executions() const {
  if (engine_.forked()) return {};
  HeldState lock(engine_.state_mutex);
  std::vector<LoopExecution> all = engine_.gone_executions;
  for (const auto& t : engine_.threads) add_executions_locked(*t, all);
  return all;
}

std::vector<LoopReport> LoopReports::loops() const try {
  if (engine_.forked()) return {};
  HeldState lock(engine_.state_mutex);
  std::vector<LoopReport> all;
  bool metered = engine_.loop_meter.begin != nullptr;
  for (const auto& m : engine_.methods.all()) {
    if (!m->shape->timed_loops.empty())
      add_loops(*m, engine_.observer->estimates.profile_of(*m), engine_.loops_off(), all);
  }
  double lived = static_cast<double>(engine_.threads.lived_ns()) * engine_.cycles_per_ns;
  for (LoopReport& r : all) {
    r.unit = engine_.loop_meter.unit;
    if (lived != 0 && !metered) r.share = total_of(r) / lived;
  }
  std::stable_sort(all.begin(), all.end(), [](const LoopReport& a, const LoopReport& b) {
    return total_of(a) > total_of(b);
  });
  return all;
} catch (const std::exception&) { return {}; }

// An execution is attributed to a method by its slab.
void LoopReports::add_executions_locked(const AttachedThread& t,
                                        std::vector<LoopExecution>& to) const {
  uint32_t kept = t.loops().kept();
  if (kept == 0) return;
  assert(kept <= t.first_loops.size());
  std::map<const uint64_t*, const Method*> by_slab;
  for (const auto& m : engine_.methods.all()) {
    const uint64_t* slab = t.context().method(m->id.index()).slab;
    if (slab != nullptr && m->has_shape()) by_slab[slab] = m.get();
  }
  for (const auto& e : std::span(t.first_loops).first(kept)) {
    auto at = by_slab.find(e.slab);
    if (at == by_slab.end()) continue;  // its method is gone
    const Method& m = *at->second;
    LoopExecution x;
    x.method = m.id;
    x.cycles = e.cycles;
    x.thread = t.number();
    const std::vector<uint32_t>& offsets = m.probes->plan().loops;
    assert(e.words >= e.slab);
    auto offset = static_cast<uint32_t>((e.words - e.slab) * 8);
    auto loop = static_cast<uint32_t>(std::ranges::find(offsets, offset) - offsets.begin());
    if (loop < m.shape->loop_count) x.loop = LoopId(loop);
    for (const jit::LoopRange& range : m.shape->loop_ranges) {
      if (range.loop == loop) x.start_offset = range.begin;
    }
    to.push_back(x);
  }
}

}  // namespace uptier::tiering
