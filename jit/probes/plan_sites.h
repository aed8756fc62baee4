// plan_sites: plans the observations of an instrumented copy in addition to control flow, and reads
// them.
//
// The words of each kind in the slab are defined in sampler/site_counts.h and loop_words.h. All
// words 0 is the state before the first observation, so a fresh slab needs no preparation.
//
// The published words of a site:
//
//   call_target  [other]                                   and entries {target, count}
//   value        [count, sum low, sum high, least, greatest, other]    and entries {value, count}
//   range        [count, sum low, sum high, least, greatest]
//   counter, hit [n]     gauge [value]     log [events, lost]
//   loop         [entries, iterations, timed, timed iterations, cycles, exclusive cycles,
//                 squares low, squares high]; the iterations of a function are its entries;
//                 an execution that is on the timer's stack is not yet among the entries
//
// Least and greatest are INT64_MAX and INT64_MIN while the count is 0.
//
//   Thread: none of its own. A slab with sites belongs to one thread: tables, sums and the timer's state
//   are not updated atomically, so a plan whose slab is shared by threads gets no sites.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/probes/probe_plan.h"
#include "sampler/loop_words.h"
#include "sampler/site_counts.h"

namespace uptier::jit {

struct SiteProbeRequest {
  bool call_targets = false;  // of every call_indirect
  bool host_probes = false;   // every probe that the host placed
  uint32_t top = 16;          // entries of a table, 1..4096
  bool recent = false;        // tables are recent-weighted, see site_tables.h
  bool turns = true;          // with host_probes: also conditions of selects
  LoopProbeRequest loops = {};
};

// Returns how a probe or an indirect call is observed; its offset is not set. Nothing if the
// request leaves it out, or it observes nothing.
std::optional<ProbePlan::Site> observed_as(const SiteProbeRequest& r, const Inst& i);

// Returns the number of words of such a site.
uint32_t words_of(const ProbePlan::Site& s, bool recent);

// Fills `sites` and `loops` of the plan and adds to `bytes`. Words that the plan already has keep
// their places. Returns false, and plans nothing, if `counters` is a mode in which threads share
// the slab. `f` is in build order.
bool plan_sites(const Function& f, const SiteProbeRequest& r, ProbePlan& plan);

struct SiteCounts {
  std::vector<uint64_t> words;               // as above, for the site's kind
  std::vector<sampler::TableEntry> entries;  // most frequent first, then by key

  friend bool operator==(const SiteCounts&, const SiteCounts&) = default;
};

// Returns the counts of a site of the plan, from a copy of a slab; `index` is site - block_sites -
// 1. Empty for a site that the plan leaves out.
SiteCounts site_counts(const ProbePlan& plan, uint32_t index, std::span<const uint64_t> slab);

// Returns the words of a loop, or of the function if `loop` is loop_count. All 0 for a loop that
// the plan leaves out.
std::array<uint64_t, sampler::kLoopPublicWords> loop_counts(const ProbePlan& plan, LoopId loop,
                                                            std::span<const uint64_t> slab);

// Executions of a loop that were timed to their end, and their cycles.
struct AllExecutions {
  uint64_t timed = 0;
  uint64_t cycles = 0;
};

// Returns the time of a loop in dual mode; nothing in other modes, and if the loop is not timed.
// `loop` is as above, and must be known to the plan.
std::optional<AllExecutions> all_executions(const ProbePlan& plan, LoopId loop,
                                            std::span<const uint64_t> slab);

// The same for a site that no plan has; its words are `words`.
SiteCounts site_counts(const ProbePlan::Site& s, bool recent, std::span<const uint64_t> words);

// Ages the tables of a slab, or of a copy of it; see sampler/site_tables.h. Does nothing if the
// plan's tables are not recent-weighted.
void age_tables(const ProbePlan& plan, uint64_t* slab) noexcept;

// Enables the timing of every loop again. Called by the owner of the slab after a flush.
void rearm_loops(const ProbePlan& plan, uint64_t* slab) noexcept;

}  // namespace uptier::jit
