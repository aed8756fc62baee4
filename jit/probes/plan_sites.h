// plan_sites: what an instrumented copy observes beside control flow, and how to read it.
//
// The words of each kind in the slab are those of sampler/site_counts.h and loop_words.h; all words
// 0 is the state before the first observation, so a fresh slab needs no preparation.
//
// What a site is published as, in words:
//
//   call_target  [other]                                   and entries {target, count}
//   value        [count, sum low, sum high, least, greatest, other]    and entries {value, count}
//   range        [count, sum low, sum high, least, greatest]
//   counter, hit [n]     gauge [value]     log [events, lost]
//   loop         [entries, iterations, timed, timed iterations, cycles, exclusive cycles,
//                 squares low, squares high]; the iterations of a function are its entries;
//                 an execution that is on the timer's stack is not among the entries yet
//
// Least and greatest are INT64_MAX and INT64_MIN while the count is 0.
//
//   Thread: none of its own. A slab with sites belongs to one thread: tables, sums and the timer's
//   state are not updated atomically, so a plan whose slab threads share gets none.
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
  bool turns = true;          // with host_probes: conditions of selections, too
  LoopProbeRequest loops = {};
};

// Returns as what a probe or an indirect call is observed; its offset is not set. Nothing where the
// request leaves it out, or it observes nothing.
std::optional<ProbePlan::Site> observed_as(const SiteProbeRequest& r, const Inst& i);

// Returns how many words such a site takes.
uint32_t words_of(const ProbePlan::Site& s, bool recent);

// Fills `sites` and `loops` of the plan and lets `bytes` grow. Words that the plan has already stay
// where they are. Returns false, and plans nothing, when `counters` is a mode in which threads
// share the slab. `f` is in build order.
bool plan_sites(const Function& f, const SiteProbeRequest& r, ProbePlan& plan);

struct SiteCounts {
  std::vector<uint64_t> words;               // as above, for the site's kind
  std::vector<sampler::TableEntry> entries;  // most frequent first, then by key

  friend bool operator==(const SiteCounts&, const SiteCounts&) = default;
};

// Returns what a site of the plan counted in a copy of a slab; `index` is site - block_sites - 1.
// Empty for a site that the plan leaves out.
SiteCounts site_counts(const ProbePlan& plan, uint32_t index, std::span<const uint64_t> slab);

// Returns the words of a loop, or of the function when `loop` is loop_count. All 0 for a loop that
// the plan leaves out.
std::array<uint64_t, sampler::kLoopPublicWords> loop_counts(const ProbePlan& plan, LoopId loop,
                                                            std::span<const uint64_t> slab);

// Executions of a loop that were timed to their end, and their cycles.
struct AllExecutions {
  uint64_t timed = 0;
  uint64_t cycles = 0;
};

// Returns what a loop took in dual mode; nothing in others, and where the loop is not timed. `loop`
// as above, and one that the plan knows.
std::optional<AllExecutions> all_executions(const ProbePlan& plan, LoopId loop,
                                            std::span<const uint64_t> slab);

// The same of a site that no plan has, whose words are `words`.
SiteCounts site_counts(const ProbePlan::Site& s, bool recent, std::span<const uint64_t> words);

// Ages the tables of a slab, or of a copy of it; see sampler/site_tables.h. Nothing where the plan's
// are not recent-weighted.
void age_tables(const ProbePlan& plan, uint64_t* slab) noexcept;

// Lets every loop be timed again. By the owner of the slab, when it has flushed.
void rearm_loops(const ProbePlan& plan, uint64_t* slab) noexcept;

}  // namespace uptier::jit
