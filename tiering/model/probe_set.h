// ProbeSet: the probes of one method's instrumented copies, how to decode their slabs, and the
// schema they are published by.
//
//   slab words --read--> counts and tables of the schema
//
// Made from a description of the method, then constant.
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

// The choice of probes, for all methods of a runtime.
struct ProbeChoice {
  jit::ProbeRequest flow;
  jit::SiteProbeRequest sites;
  LoopChoice timed;

  static ProbeChoice from(const Options& o);
};

// Returns the kind of slot as which a probe is published.
SlotKind slot_kind_of(ProbeKind k);

// Returns the method whose entry stub is at `address`, if there is one.
using MethodAt = std::function<std::optional<MethodKey>(uint64_t address)>;

// Counts in target tables that belong to forgotten methods, whose stubs other methods have now or
// may get: by site and stub, as upper bounds. They belong to no method and are moved to `other`;
// see forgotten_targets.cc.
using ForgottenTargets = std::map<std::pair<SiteId, uint64_t>, uint64_t>;

// The position of one site's target table in a slab.
struct TargetTable {
  SiteId site = 0;
  uint32_t word = 0;  // its first word
  sampler::TableShape shape;
};

class ProbeSet {
 public:
  ProbeSet() = default;
  ProbeSet(const jit::Function& f, const ProbeChoice& choice);
  // For a method whose counters the host lays out: one word for each word of the schema.
  explicit ProbeSet(Schema own);

  const jit::ProbePlan& plan() const { return plan_; }
  // Says whether outcomes of a condition are observed at the site (jit/frontend/select_probes.h).
  bool counts_turns(SiteId site) const;
  // The plan of the instrumented copy of optimized code, which counts in a slab of its own: one
  // word per block, tables of call targets, and the probes of the method's own body. Words of
  // inlined bodies follow.
  const jit::ProbePlan& optimized_plan() const { return optimized_plan_; }
  const Schema& schema() const { return schema_; }
  // The kind of draw of each slot (profile::Draw); empty if the host lays out the counters.
  std::span<const profile::Draw> draws() const { return draws_; }
  // The block of each slot, by its site; for an edge, its source block. 0: not known. Empty if the
  // host lays out the counters.
  std::span<const SiteId> blocks_of_slots() const { return block_of_; }
  // The edges between blocks, by site of kEdge - 1; empty in block mode.
  std::span<const profile::FlowEdge> flow_edges() const {
    return std::span(flow_.shape().graph.edges).first(edges_);
  }
  uint32_t slab_words() const { return words_; }
  // Says whether the body is a single block without counters: the number of calls says it all.
  bool counts_by_calls() const { return !own_ && words_ == 0 && blocks_ != 0; }
  // Says whether all threads count in one slab, so that each flush has the counts of all.
  bool shared() const { return plan_.counters != CounterMode::kPerThread; }

  // Decodes a copy of a slab.
  //
  //   traps    frames that traps unwound, by block site - 1; may be shorter
  //   entries  calls that ran the instrumented copy
  profile::Observed read(std::span<const uint64_t> slab, std::span<const uint64_t> traps,
                         uint64_t entries, const MethodAt& method_at,
                         const ForgottenTargets& forgotten = {}) const;
  // The same for a copy of an optimized copy's slab, for the slots that it counts.
  profile::Observed read_optimized(std::span<const uint64_t> slab, const MethodAt& method_at,
                                   const ForgottenTargets& forgotten = {}) const;
  // Says whether value probes, of the host or the library, are observed in optimized code.
  bool has_probes_in_optimized() const;
  // Returns the target tables in slabs of either plan.
  std::vector<TargetTable> target_tables(bool optimized) const;
  // Counts of blocks and edges that are derived from others may fall by the number of running
  // frames. Published counts must not fall while frames run, so this raises the counts in `now` to
  // those in `seen`.
  void keep_flow_rising(const profile::Observed& seen, profile::Observed& now) const;
  // Returns sum |approximate - exact| / sum exact over the flow counters of a slab in kDual; 0 in
  // other modes.
  double dual_error(std::span<const uint64_t> slab) const;
  // Returns the cycles of loops that are timed at each execution, by LoopId; empty without
  // loop_dual.
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
  uint32_t edges_ = 0;           // slots of edges, which follow those of blocks
  std::vector<Source> sources_;  // of the slots after these
};

}  // namespace uptier::tiering
