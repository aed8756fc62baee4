// ProbeSet: what the instrumented copies of one method observe, how their slabs are read, and as
// what it is published.
//
//   slab words --read--> counts and tables of the schema
//
// Made from a description of the method and then constant.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "jit/analysis/draws.h"
#include "jit/probes/flow_layout.h"
#include "jit/probes/plan_sites.h"
#include "profile/data/estimate.h"
#include "sampler/site_tables.h"
#include "tiering/base/loop_choice.h"
#include "uptier/options.h"
#include "uptier/profile.h"

namespace uptier::tiering {

// The choice of what is observed, for all methods of a runtime.
struct ProbeChoice {
  jit::ProbeRequest flow;
  jit::SiteProbeRequest sites;
  LoopChoice timed;

  static ProbeChoice from(const Options& o);
};

// Returns as what a probe is published.
SlotKind slot_kind_of(ProbeKind k);

// Returns the method whose entry a code address is, if there is one.
using MethodAt = std::function<std::optional<MethodKey>(uint64_t address)>;

// What entries of target tables hold of methods that are forgotten, whose stubs are others' by now
// or may be: by site and stub, and at most so many. It is nobody's and belongs to `other`; see
// forgotten_targets.cc.
using ForgottenTargets = std::map<std::pair<SiteId, uint64_t>, uint64_t>;

// The place of one site's targets in a slab.
struct TargetTable {
  SiteId site = 0;
  uint32_t word = 0;  // its first
  sampler::TableShape shape;
};

class ProbeSet {
 public:
  ProbeSet() = default;
  ProbeSet(const jit::Function& f, const ProbeChoice& choice);
  // For a method whose counters the host lays out: a word for each word of the schema.
  explicit ProbeSet(Schema own);

  const jit::ProbePlan& plan() const { return plan_; }
  // Returns whether it is a site at which conditions are observed as they turn (jit/frontend/select_probes.h).
  bool counts_turns(SiteId site) const;
  // What the instrumented copy of optimized code counts, in a slab of its own: one word a block,
  // tables of call targets, and what the probes of the method's own body see. What is inlined lies
  // behind it.
  const jit::ProbePlan& optimized_plan() const { return optimized_plan_; }
  const Schema& schema() const { return schema_; }
  // With what each slot is drawn; empty of counters that the host lays out.
  std::span<const profile::Draw> draws() const { return draws_; }
  // Which block each slot belongs to, by its site: an edge to the block it comes from. 0: not known.
  // Empty of counters that the host lays out.
  std::span<const SiteId> blocks_of_slots() const { return block_of_; }
  // The edges between blocks, by site of kEdge - 1; empty in block mode.
  std::span<const profile::FlowEdge> flow_edges() const {
    return std::span(flow_.shape().graph.edges).first(edges_);
  }
  uint32_t slab_words() const { return words_; }
  // Returns whether a body is one block that no code counts: the number of its calls says all.
  bool counts_by_calls() const { return !own_ && words_ == 0 && blocks_ != 0; }
  // Returns whether all threads count in one slab, so that each hands over the counts of all.
  bool shared() const { return plan_.counters != CounterMode::kPerThread; }

  // Returns what a copy of a slab holds.
  //
  //   traps    frames that traps unwound, by block site - 1; may be shorter
  //   entries  calls that ran the instrumented copy
  profile::Observed read(std::span<const uint64_t> slab, std::span<const uint64_t> traps,
                         uint64_t entries, const MethodAt& method_at,
                         const ForgottenTargets& forgotten = {}) const;
  // The same of a copy of the optimized copy's slab, as far as that counts.
  profile::Observed read_optimized(std::span<const uint64_t> slab, const MethodAt& method_at,
                                   const ForgottenTargets& forgotten = {}) const;
  // Returns whether probes of values, the host's or the library's, are observed in optimized code.
  bool has_probes_in_optimized() const;
  // Returns where slabs have targets of calls: those of either plan.
  std::vector<TargetTable> target_tables(bool optimized) const;
  // Counts of blocks and edges that follow from others may fall by the frames that are under way;
  // what was published once stays: raises those of `now` to what `seen` has.
  void keep_flow_rising(const profile::Observed& seen, profile::Observed& now) const;
  // Returns sum |approximate - exact| / sum exact over the flow counters of a slab in kDual; 0 in
  // other modes.
  double dual_error(std::span<const uint64_t> slab) const;
  // Returns what loops took that are timed at each execution, by LoopId; empty without loop_dual.
  std::vector<jit::AllExecutions> all_executions(std::span<const uint64_t> slab) const;

 private:
  struct Source {
    bool loop;       // a loop, or a site of the plan
    uint32_t index;  // LoopId, or site - block_sites - 1
  };
  void add_sites(const jit::Function& f, const jit::SiteDraws& draws);
  void find_blocks(const jit::Function& f);
  void add_flow(std::span<const uint64_t> slab, std::span<const uint64_t> traps, uint64_t entries,
                profile::Observed& out) const;
  void add_site(const jit::ProbePlan& plan, const Slot& slot, const Source& s,
                std::span<const uint64_t> slab, const MethodAt& method_at,
                const ForgottenTargets& forgotten, profile::Observed& out) const;

  bool own_ = false;
  jit::ProbePlan plan_;
  jit::ProbePlan optimized_plan_;
  jit::FlowLayout flow_;
  Schema schema_;
  std::vector<profile::Draw> draws_;
  std::vector<SiteId> block_of_;  // by slot
  uint32_t words_ = 0;
  uint32_t blocks_ = 0;          // slots of blocks
  uint32_t edges_ = 0;           // slots of edges behind them
  std::vector<Source> sources_;  // of the slots behind these
};

}  // namespace uptier::tiering
