#include "jit/plan_sites.h"

#include <algorithm>

#include "jit/ir/param_uses.h"
#include "jit/ir/select_probes.h"

namespace uptier::jit {
namespace {

using sampler::TableShape;

uint64_t word(int64_t v) { return static_cast<uint64_t>(v); }

uint32_t words_of(ProbeKind kind, const TableShape& shape) {
  switch (kind) {
    case ProbeKind::kCallTarget:
    case ProbeKind::kValue: return shape.words();
    case ProbeKind::kRange: return sampler::kRangeWords;
    case ProbeKind::kLog: return 2;
    case ProbeKind::kCounter:
    case ProbeKind::kHit:
    case ProbeKind::kGauge: return 1;
    default: return 0;  // observes nothing here
  }
}

// How often each pair was seen, as a table would have it.
SiteCounts turns_counts(std::span<const uint64_t> words) {
  SiteCounts c{{0, 0, 0, word(INT64_MAX), word(INT64_MIN), 0}, {}};
  for (uint64_t pair = 0; pair < kTurnValues; ++pair) {
    uint64_t n = words[kTurnCounts + pair];
    if (n == 0) continue;
    if (c.entries.empty()) c.words[3] = pair;
    c.words[0] += n;
    c.words[1] += n * pair;
    c.words[4] = pair;
    c.entries.push_back({pair, n});
  }
  std::ranges::stable_sort(c.entries, std::greater<>{}, &sampler::TableEntry::count);
  return c;
}

class Planner {
 public:
  Planner(const Function& f, const SiteProbeRequest& r, ProbePlan& plan)
      : f_(f), r_(r), plan_(plan) {}

  void run() {
    plan_.recent = r_.recent;
    plan_.records = std::min(r_.loops.records, uint32_t{INT32_MAX});
    plan_.sites.assign(f_.site_count - f_.block_sites, {});
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) visit(f_.inst(i));
    }
    if (r_.loops.loops || r_.loops.function) place_loops();
  }

 private:
  void visit(const Inst& i) {
    if (i.op == Opcode::kCallIndirect && r_.call_targets) {
      place(i.site, ProbeKind::kCallTarget, r_.top);
      plan_.sites[i.site - f_.block_sites - 1].of_call = true;
    }
    if (i.op != Opcode::kProbe || !r_.host_probes) return;
    ProbeKind kind = probe_kind(i);
    if (kind != ProbeKind::kBlock && (i.args.size != 0 || kind == ProbeKind::kHit)) {
      if (counts_turns(i)) return r_.turns ? place_turns(i.aux) : void();
      place(i.aux, kind, (i.flags & kProbeOwn) != 0 ? kParamProbeTop : r_.top);
    }
  }

  void place_turns(SiteId site) {
    plan_.sites[site - f_.block_sites - 1] = {ProbeKind::kValue, take(kTurnWords), 0};
  }

  void place(SiteId site, ProbeKind kind, uint32_t top) {
    ProbePlan::Site& s = plan_.sites[site - f_.block_sites - 1];
    s.kind = kind;
    bool table = kind == ProbeKind::kCallTarget || kind == ProbeKind::kValue;
    s.top = table ? std::clamp(top, 1u, 4096u) : 0;
    uint32_t words = words_of(kind, {s.top, kind == ProbeKind::kValue, r_.recent});
    if (words != 0) s.offset = take(words);
  }

  void place_loops() {
    std::vector<bool> chosen = select_loops(find_loop_forest(f_), r_.loops);
    plan_.loops.assign(chosen.size(), ProbePlan::kNone);
    plan_.dual_loops = r_.loops.dual;
    uint32_t words = r_.loops.dual ? sampler::kLoopDualWords : sampler::kLoopWords;
    plan_.times.assign(chosen.size(), plan_.records != 0 && !r_.loops.timed);
    if (r_.loops.timed) {
      for (uint32_t l : *r_.loops.timed) {
        if (l < chosen.size()) plan_.times[l] = plan_.records != 0;
      }
    }
    for (size_t l = 0; l < chosen.size(); ++l) {
      if (chosen[l]) plan_.loops[l] = take(words);
    }
  }

  uint32_t take(uint32_t words) {
    uint32_t at = (plan_.bytes + 7) & ~7u;
    plan_.bytes = at + 8 * words;
    return at;
  }

  const Function& f_;
  const SiteProbeRequest& r_;
  ProbePlan& plan_;
};

}  // namespace

bool plan_sites(const Function& f, const SiteProbeRequest& r, ProbePlan& plan) {
  if (plan.counters != CounterMode::kPerThread) return false;
  Planner(f, r, plan).run();
  return true;
}

SiteCounts site_counts(const ProbePlan& plan, uint32_t index, std::span<const uint64_t> slab) {
  const ProbePlan::Site& s = plan.sites[index];
  if (s.offset == ProbePlan::kNone) return {};
  bool turns = s.kind == ProbeKind::kValue && s.top == 0;
  if (turns) return turns_counts(slab.subspan(s.offset / 8, kTurnWords));
  TableShape shape{s.top, s.kind == ProbeKind::kValue, plan.recent};
  auto words = slab.subspan(s.offset / 8, words_of(s.kind, shape));
  switch (s.kind) {
    case ProbeKind::kCallTarget: {
      sampler::ValueCounts c = sampler::read_table(words, shape);
      return {{c.other}, std::move(c.entries)};
    }
    case ProbeKind::kValue: {
      sampler::ValueCounts c = sampler::read_table(words, shape);
      return {{c.count, c.sum.low, c.sum.high, word(c.least), word(c.greatest), c.other},
              std::move(c.entries)};
    }
    case ProbeKind::kRange: {
      sampler::ValueCounts c = sampler::read_range(words);
      return {{c.count, c.sum.low, c.sum.high, word(c.least), word(c.greatest)}, {}};
    }
    default: return {{words.begin(), words.end()}, {}};
  }
}

std::array<uint64_t, sampler::kLoopPublicWords> loop_counts(const ProbePlan& plan, LoopId loop,
                                                            std::span<const uint64_t> slab) {
  std::array<uint64_t, sampler::kLoopPublicWords> out{};
  if (loop.index() >= plan.loops.size() || plan.loops[loop.index()] == ProbePlan::kNone) return out;
  auto words = slab.subspan(plan.loops[loop.index()] / 8, out.size());
  std::copy(words.begin(), words.end(), out.begin());
  uint64_t open = sampler::loop_open(slab[plan.loops[loop.index()] / 8 + sampler::kLoopState]);
  out[sampler::kLoopEntries] -= std::min(open, out[sampler::kLoopEntries]);
  if (loop.index() + 1 == plan.loops.size()) {
    out[sampler::kLoopIterations] = out[sampler::kLoopEntries];
    out[sampler::kLoopTimedIterations] = out[sampler::kLoopTimed];
  }
  return out;
}

std::optional<AllExecutions> all_executions(const ProbePlan& plan, LoopId loop,
                                            std::span<const uint64_t> slab) {
  if (!plan.dual_loops || !plan.times[loop.index()]) return std::nullopt;
  if (plan.loops[loop.index()] == ProbePlan::kNone) return std::nullopt;
  auto words = slab.subspan(plan.loops[loop.index()] / 8, sampler::kLoopDualWords);
  return AllExecutions{words[sampler::kLoopAllTimed], words[sampler::kLoopAllCycles]};
}

void age_tables(const ProbePlan& plan, uint64_t* slab) noexcept {
  if (!plan.recent) return;
  for (const ProbePlan::Site& s : plan.sites) {
    bool value = s.kind == ProbeKind::kValue;
    bool table =
        s.offset != ProbePlan::kNone && s.top != 0 && (value || s.kind == ProbeKind::kCallTarget);
    if (table) sampler::age_table(slab + s.offset / 8, {s.top, value, true});
  }
}

void rearm_loops(const ProbePlan& plan, uint64_t* slab) noexcept {
  for (uint32_t at : plan.loops) {
    if (at != ProbePlan::kNone) sampler::rearm_loop(slab + at / 8);
  }
}

}  // namespace uptier::jit
