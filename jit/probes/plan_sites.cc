#include "jit/probes/plan_sites.h"

#include <algorithm>

#include "jit/analysis/param_uses.h"
#include "jit/frontend/select_probes.h"

namespace uptier::jit {
namespace {

using sampler::TableShape;

uint64_t word(int64_t v) { return static_cast<uint64_t>(v); }

bool has_table(ProbeKind kind) {
  return kind == ProbeKind::kCallTarget || kind == ProbeKind::kValue;
}

// Returns how often each pair was seen, in the form of a table.
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
    std::optional<ProbePlan::Site> seen = observed_as(r_, i);
    if (!seen) return;
    ProbePlan::Site& s = plan_.sites[(seen->of_call ? i.site : i.aux) - f_.block_sites - 1];
    s = *seen;
    uint32_t words = words_of(s, r_.recent);
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

std::optional<ProbePlan::Site> observed_as(const SiteProbeRequest& r, const Inst& i) {
  auto table = [](ProbeKind kind, uint32_t top, bool of_call) {
    return ProbePlan::Site{kind, ProbePlan::kNone, has_table(kind) ? std::clamp(top, 1u, 4096u) : 0,
                           of_call};
  };
  if (i.op == Opcode::kCallIndirect && r.call_targets) {
    return table(ProbeKind::kCallTarget, r.top, true);
  }
  if (i.op != Opcode::kProbe) return std::nullopt;
  ProbeKind kind = probe_kind(i);
  bool sees = kind != ProbeKind::kBlock && (i.args.size != 0 || kind == ProbeKind::kHit);
  bool own = (i.flags & kProbeOwn) != 0;
  bool of_call = own && kind == ProbeKind::kCallTarget;
  if (!sees || !(of_call ? r.call_targets : r.host_probes)) return std::nullopt;
  if (of_call) return table(kind, r.top, true);
  if (!counts_turns(i)) return table(kind, own ? kParamProbeTop : r.top, false);
  if (!r.turns) return std::nullopt;
  return ProbePlan::Site{ProbeKind::kValue, ProbePlan::kNone, 0, false};
}

uint32_t words_of(const ProbePlan::Site& s, bool recent) {
  switch (s.kind) {
    case ProbeKind::kValue: {
      if (s.top == 0) return kTurnWords;
      [[fallthrough]];
    }
    case ProbeKind::kCallTarget:
      return TableShape{s.top, s.kind == ProbeKind::kValue, recent}.words();
    case ProbeKind::kRange: return sampler::kRangeWords;
    case ProbeKind::kLog: return 2;
    case ProbeKind::kCounter:
    case ProbeKind::kHit:
    case ProbeKind::kGauge: return 1;
    default: return 0;  // observes nothing here
  }
}

bool plan_sites(const Function& f, const SiteProbeRequest& r, ProbePlan& plan) {
  if (plan.counters != CounterMode::kPerThread) return false;
  Planner(f, r, plan).run();
  return true;
}

SiteCounts site_counts(const ProbePlan& plan, uint32_t index, std::span<const uint64_t> slab) {
  const ProbePlan::Site& s = plan.sites[index];
  if (s.offset == ProbePlan::kNone) return {};
  return site_counts(s, plan.recent, slab.subspan(s.offset / 8, words_of(s, plan.recent)));
}

SiteCounts site_counts(const ProbePlan::Site& s, bool recent, std::span<const uint64_t> words) {
  bool turns = s.kind == ProbeKind::kValue && s.top == 0;
  if (turns) return turns_counts(words);
  TableShape shape{s.top, s.kind == ProbeKind::kValue, recent};
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
