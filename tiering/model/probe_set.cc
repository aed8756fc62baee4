#include "tiering/model/probe_set.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "jit/frontend/select_probes.h"

namespace uptier::tiering {
namespace {

bool is_of_turns(const jit::ProbePlan::Site& s) {
  return s.kind == ProbeKind::kValue && s.top == 0;
}

bool has_extremes(SlotKind k) { return k == SlotKind::kValue || k == SlotKind::kRange; }

}  // namespace

SlotKind slot_kind_of(ProbeKind k) {
  switch (k) {
    case ProbeKind::kCallTarget: return SlotKind::kCallTarget;
    case ProbeKind::kValue: return SlotKind::kValue;
    case ProbeKind::kLog: return SlotKind::kLog;
    case ProbeKind::kRange: return SlotKind::kRange;
    case ProbeKind::kGauge: return SlotKind::kGauge;
    default: return SlotKind::kCounter;
  }
}

ProbeChoice ProbeChoice::from(const Options& o) {
  ProbeChoice c;
  c.flow = {o.flow, o.counters, o.narrow_counters};
  // Tables and sums of sites belong to one thread each.
  bool own_slabs = o.counters == CounterMode::kPerThread;
  c.sites.call_targets = own_slabs && o.targets != 0;
  c.sites.host_probes = own_slabs;
  c.sites.top = static_cast<uint32_t>(std::max<uint64_t>(o.targets, 1));
  c.sites.recent = o.recent;
  if (own_slabs && o.loops) {
    c.sites.loops.loops = true;
    c.sites.loops.function = o.loop_functions;
    c.sites.loops.max_depth = static_cast<uint32_t>(o.loop_depth);
    c.sites.loops.min_height = static_cast<uint32_t>(o.loop_height);
    c.sites.loops.siblings_only = o.loop_siblings;
    c.sites.loops.records = static_cast<uint32_t>(o.loop_records);
    c.sites.loops.dual = o.loop_dual;
    c.timed = *LoopChoice::parse(o.time_loops);  // checked with the other options
  }
  return c;
}

ProbeSet::ProbeSet(const jit::Function& f, const ProbeChoice& choice) {
  jit::CountedFlow flow = jit::counted_flow(f, choice.flow.flow);
  plan_ = jit::plan_probes(f, choice.flow, flow);
  jit::plan_sites(f, choice.sites, plan_);
  plan_.bytes = (plan_.bytes + 7) & ~7u;
  optimized_plan_ = jit::plan_probes(f, {.flow = FlowMode::kBlocks});
  // Selects need no counts once code is optimized: their form has been chosen.
  jit::SiteProbeRequest sites = choice.sites;
  sites.turns = false;
  sites.loops = {};
  jit::plan_sites(f, sites, optimized_plan_);
  words_ = plan_.bytes / 8;
  assert(optimized_plan_.bytes % 8 == 0);
  flow_ = jit::FlowLayout(std::move(flow), plan_);
  schema_.cfg_hash = f.cfg_hash;
  blocks_ = f.block_sites;
  for (SiteId s = 1; s <= blocks_; ++s) schema_.add(SlotKind::kBlock, s);
  edges_ = flow_.real_edges();
  for (SiteId s = 1; s <= edges_; ++s) schema_.add(SlotKind::kEdge, s);
  jit::SiteDraws draws = jit::find_draws(f);
  draws_ = draws.blocks;
  if (edges_ != 0) draws_.insert(draws_.end(), draws.edges.begin(), draws.edges.end());
  add_sites(f, draws);
  find_blocks(f);
  assert(draws_.size() == schema_.slots.size());
  assert(blocks_ + edges_ + sources_.size() == schema_.slots.size());
}

ProbeSet::ProbeSet(Schema own) : own_(true), schema_(std::move(own)), words_(schema_.words()) {}

void ProbeSet::find_blocks(const jit::Function& f) {
  std::vector<SiteId> of_site(f.site_count + 1);
  for (SiteId b = 1; b <= f.layout.size(); ++b) {
    for (jit::InstId i : f.block(f.layout[b - 1]).insts) {
      const jit::Inst& inst = f.inst(i);
      SiteId site = inst.op == Opcode::kProbe ? inst.aux : inst.site;
      if (site > f.block_sites && site < of_site.size()) of_site[site] = b;
    }
  }
  for (const Slot& s : schema_.slots) {
    if (s.kind == SlotKind::kBlock) {
      block_of_.push_back(s.site);
    } else if (s.kind == SlotKind::kEdge) {
      block_of_.push_back(flow_edges()[s.site - 1].from);
    } else {
      block_of_.push_back(s.kind == SlotKind::kLoop ? 0 : of_site[s.site]);
    }
  }
}

// Slots are in ascending order of kind and site; a loop's site is its id + 1.
void ProbeSet::add_sites(const jit::Function& f, const jit::SiteDraws& draws) {
  struct Row {
    SlotKind kind;
    SiteId site;
    uint32_t top;
    Source source;
  };
  std::vector<Row> rows;
  for (uint32_t i = 0; i < plan_.sites.size(); ++i) {
    const jit::ProbePlan::Site& s = plan_.sites[i];
    if (s.offset == jit::ProbePlan::kNone) continue;
    uint32_t top = is_of_turns(s) ? jit::kTurnValues : s.top;
    rows.push_back({slot_kind_of(s.kind), f.block_sites + 1 + i, top, {false, i}});
  }
  for (uint32_t l = 0; l < plan_.loops.size(); ++l) {
    if (plan_.loops[l] == jit::ProbePlan::kNone) continue;
    rows.push_back({SlotKind::kLoop, l + 1, 0, {true, l}});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.site < b.site;
  });
  for (const Row& r : rows) {
    schema_.add(r.kind, r.site, r.top);
    sources_.push_back(r.source);
    draws_.push_back(r.source.loop ? profile::Draw::kEither : draws.sites[r.source.index]);
  }
}

void ProbeSet::add_flow(std::span<const uint64_t> slab, std::span<const uint64_t> traps,
                        uint64_t entries, profile::Observed& out) const {
  profile::FlowCounts counts = flow_.counts_of(slab, traps, entries);
  std::copy_n(counts.blocks.begin(), std::min<size_t>(blocks_, counts.blocks.size()),
              out.counts.begin());
  // Counts after the real edges are those of entries and exits, which profiles do not show.
  std::copy_n(counts.edges.begin(), std::min<size_t>(edges_, counts.edges.size()),
              out.counts.begin() + blocks_);
}

void ProbeSet::add_site(const jit::ProbePlan& plan, const Slot& slot, const Source& s,
                        std::span<const uint64_t> slab, const MethodAt& method_at,
                        const ForgottenTargets& forgotten, profile::Observed& out) const {
  assert(slot.word < out.counts.size());
  auto words = out.counts.begin() + slot.word;
  if (s.loop) {
    auto counts = jit::loop_counts(plan, LoopId(s.index), slab);
    std::copy(counts.begin(), counts.end(), words);
    return;
  }
  jit::SiteCounts counts = jit::site_counts(plan, s.index, slab);
  std::copy(counts.words.begin(), counts.words.end(), words);
  if (has_extremes(slot.kind) && counts.words[0] == 0) {
    words[slot_word::kMin] = words[slot_word::kMax] = 0;
  }
  Table table;
  for (const sampler::TableEntry& e : counts.entries) {
    TableKey key{0, e.key};
    uint64_t count = e.count;
    if (slot.kind == SlotKind::kCallTarget) {
      std::optional<MethodKey> callee = method_at(e.key);
      auto was = forgotten.find({slot.site, e.key});
      uint64_t nobodys = was == forgotten.end() ? 0 : std::min(was->second, count);
      if (!callee) nobodys = count;
      words[slot_word::kTargetOther] += nobodys;
      count -= nobodys;
      if (count == 0) continue;
      key = {callee->module_key, callee->function_index};
    }
    table[key].count += count;
  }
  if (!table.empty()) out.tables[{slot.kind, slot.site}] = std::move(table);
}

profile::Observed ProbeSet::read(std::span<const uint64_t> slab, std::span<const uint64_t> traps,
                                 uint64_t entries, const MethodAt& method_at,
                                 const ForgottenTargets& forgotten) const {
  profile::Observed out;
  out.counts.resize(schema_.words());
  if (own_) {
    std::copy_n(slab.begin(), std::min(slab.size(), out.counts.size()), out.counts.begin());
    return out;
  }
  add_flow(slab, traps, entries, out);
  if (slab.size() < words_) return out;
  for (size_t i = 0; i < sources_.size(); ++i) {
    add_site(plan_, schema_.slots[blocks_ + edges_ + i], sources_[i], slab, method_at, forgotten,
             out);
  }
  return out;
}

profile::Observed ProbeSet::read_optimized(std::span<const uint64_t> slab,
                                           const MethodAt& method_at,
                                           const ForgottenTargets& forgotten) const {
  profile::Observed out;
  out.counts.resize(schema_.words());
  // In the schema, slots of blocks come first.
  std::copy_n(slab.begin(), std::min<size_t>(slab.size(), blocks_), out.counts.begin());
  if (slab.size() < optimized_plan_.bytes / 8) return out;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& s = sources_[i];
    bool counted = !s.loop && optimized_plan_.sites[s.index].offset != jit::ProbePlan::kNone;
    if (!counted) continue;
    add_site(optimized_plan_, schema_.slots[blocks_ + edges_ + i], s, slab, method_at, forgotten,
             out);
  }
  return out;
}

bool ProbeSet::counts_turns(SiteId site) const {
  assert(site != 0);
  size_t at = size_t{site} - blocks_ - 1;
  return at < plan_.sites.size() && is_of_turns(plan_.sites[at]);
}

bool ProbeSet::has_probes_in_optimized() const {
  return std::ranges::any_of(optimized_plan_.sites, [](const jit::ProbePlan::Site& s) {
    return s.offset != jit::ProbePlan::kNone && !s.of_call;
  });
}

std::vector<TargetTable> ProbeSet::target_tables(bool optimized) const {
  const jit::ProbePlan& plan = optimized ? optimized_plan_ : plan_;
  std::vector<TargetTable> tables;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Slot& slot = schema_.slots[blocks_ + edges_ + i];
    if (slot.kind != SlotKind::kCallTarget) continue;
    const jit::ProbePlan::Site& s = plan.sites[sources_[i].index];
    if (s.offset == jit::ProbePlan::kNone) continue;
    tables.push_back({slot.site, s.offset / 8, {s.top, false, plan.recent}});
  }
  return tables;
}

void ProbeSet::keep_flow_rising(const profile::Observed& seen, profile::Observed& now) const {
  size_t flow = std::min<size_t>(own_ ? now.counts.size() : blocks_ + edges_, seen.counts.size());
  for (size_t i = 0; i < flow; ++i) now.counts[i] = std::max(now.counts[i], seen.counts[i]);
}

std::vector<jit::AllExecutions> ProbeSet::all_executions(std::span<const uint64_t> slab) const {
  std::vector<jit::AllExecutions> all;
  if (!plan_.dual_loops || slab.size() < words_) return all;
  for (uint32_t l = 0; l < plan_.loops.size(); ++l) {
    all.push_back(jit::all_executions(plan_, LoopId(l), slab).value_or(jit::AllExecutions{}));
  }
  return all;
}

double ProbeSet::dual_error(std::span<const uint64_t> slab) const {
  if (plan_.counters != CounterMode::kDual) return 0;
  std::vector<uint64_t> exact = flow_.read(slab, jit::FlowLayout::Reading::kExact);
  std::vector<uint64_t> approximate = flow_.read(slab, jit::FlowLayout::Reading::kApproximate);
  double error = 0, sum = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += std::abs(static_cast<double>(approximate[i]) - static_cast<double>(exact[i]));
    sum += static_cast<double>(exact[i]);
  }
  return sum == 0 ? 0 : error / sum;
}

}  // namespace uptier::tiering
