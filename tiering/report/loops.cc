// What timed loops took, from the profile and what compilation knows of them.
//
// Exclusive cycles are differences of estimates. The timer's own (profile.h) leave out only those
// inner executions that were timed, and most are not.
#include "tiering/report/loops.h"

#include <algorithm>

#include "jit/ir/loop_forest.h"
#include "profile/wall.h"
#include "tiering/runtime_impl.h"

namespace uptier::tiering {
namespace {

uint32_t header_location(const jit::Function& f, Block header) {
  for (jit::InstId i : f.block(header).insts) {
    if (f.inst(i).op == Opcode::kLoopHeader) return f.inst(i).loc;
  }
  return 0;
}

SiteId site_of(const Method& m, LoopId loop) {
  return (loop.valid() ? loop.index() : m.shape->loop_count) + 1;
}

// Executions whose end was not seen are taken for what the others are.
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

LoopReport report_of(const Method& m, const TimedLoop& t, const MethodProfile& p) {
  LoopReport r;
  r.method = m.id;
  r.key = m.info.key;
  r.name = m.info.name;
  r.loop = t.loop;
  r.parent = t.parent;
  r.depth = t.depth;
  r.height = t.height;
  if (t.location != 0) r.location = t.location;
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
  r.exact_cycles = exact_cycles(m, site - 1, r.entries);
  return r;
}

void add_loops(const Method& m, const MethodProfile& p, std::vector<LoopReport>& out) {
  std::vector<LoopReport> loops;
  for (const TimedLoop& t : m.shape->timed_loops) loops.push_back(report_of(m, t, p));
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

std::vector<TimedLoop> timed_loops(const jit::Function& f, const jit::ProbePlan& plan) {
  auto timed = [&](uint32_t loop) { return plan.loops[loop] != jit::ProbePlan::kNone; };
  std::vector<TimedLoop> out;
  std::vector<uint32_t> place(plan.loops.size(), UINT32_MAX);
  uint32_t count = 0;
  for (uint32_t l = 0; l < plan.loops.size(); ++l) {
    if (timed(l)) place[l] = count++;
  }
  if (count == 0) return out;
  jit::LoopForest forest = jit::find_loop_forest(f);
  uint32_t body = f.loop_count;
  for (uint32_t l = 0; l < body; ++l) {
    if (!timed(l)) continue;
    const jit::LoopForest::Loop& loop = forest.loops[l];
    LoopId up = loop.parent;
    while (up.valid() && !timed(up.index())) up = forest.loop(up).parent;
    out.push_back({LoopId(l), loop.parent, loop.depth, loop.height, header_location(f, loop.header),
                   place[up.valid() ? up.index() : body]});
  }
  if (timed(body)) out.push_back({});
  return out;
}

std::vector<LoopReport> RuntimeImpl::loops() const try {
  if (forked()) return {};
  std::lock_guard lock(state_mutex_);
  std::vector<LoopReport> all;
  for (const auto& m : methods_.all()) {
    if (!m->shape->timed_loops.empty()) add_loops(*m, observer_.profile_of(*m), all);
  }
  double lived = static_cast<double>(threads_.lived_ns()) * cycles_per_ns_;
  for (LoopReport& r : all) {
    if (lived != 0) r.share = total_of(r) / lived;
  }
  std::stable_sort(all.begin(), all.end(), [](const LoopReport& a, const LoopReport& b) {
    return total_of(a) > total_of(b);
  });
  return all;
} catch (const std::exception&) { return {}; }

}  // namespace uptier::tiering
