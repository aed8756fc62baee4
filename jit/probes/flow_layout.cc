#include "jit/probes/flow_layout.h"

#include <algorithm>

namespace uptier::jit {

FlowLayout::FlowLayout(CountedFlow flow, const ProbePlan& plan)
    : mode_(plan.flow),
      narrow_(plan.narrow),
      shared_(plan.counters != CounterMode::kPerThread),
      dual_(plan.counters == CounterMode::kDual),
      flow_(std::move(flow)),
      offsets_(plan.flow == FlowMode::kBlocks ? plan.blocks : plan.edges) {
  if (mode_ == FlowMode::kBlocks) return;
  std::copy(plan.loop_enter.begin(), plan.loop_enter.end(),
            offsets_.begin() + shape().first_arrival());
  std::copy(plan.loop_leave.begin(), plan.loop_leave.end(),
            offsets_.begin() + shape().first_leaving());
}

// Offsets of narrow counters are multiples of 4. The word is read once and then split, since
// another thread may be writing it.
uint64_t FlowLayout::counter(std::span<const uint64_t> slab, uint32_t offset) const {
  if (offset == ProbePlan::kNone || offset / 8 >= slab.size()) return 0;
  return slab[offset / 8] >> (8 * (offset % 8));
}

std::vector<uint64_t> FlowLayout::read(std::span<const uint64_t> slab, Reading reading) const {
  std::vector<uint64_t> out(offsets_.size());
  size_t words_from = mode_ == FlowMode::kEdges ? shape().first_arrival() : offsets_.size();
  uint32_t second = dual_ && reading == Reading::kApproximate ? (narrow_ ? 4 : 8) : 0;
  for (size_t i = 0; i < offsets_.size(); ++i) {
    bool event = i >= words_from;
    uint32_t at = offsets_[i];
    if (at != ProbePlan::kNone && !event) at += second;
    out[i] = counter(slab, at);
    if (event || !narrow_) continue;
    out[i] &= UINT32_MAX;
    if (shared_ && out[i] >= ProbePlan::kNarrowFull) out[i] = UINT32_MAX;
  }
  return out;
}

profile::FlowCounts FlowLayout::counts(std::span<const uint64_t> counters,
                                       std::span<const uint64_t> traps, uint64_t entries) const {
  if (mode_ == FlowMode::kBlocks) return {{counters.begin(), counters.end()}, {}, false};
  std::vector<uint64_t> by_edge(counters.begin(), counters.end());
  by_edge.resize(shape().graph.edges.size());
  if (shape().entry_is_known()) by_edge[shape().entry()] = entries;
  size_t blocks = std::min<size_t>(traps.size(), shape().graph.blocks);
  std::copy_n(traps.begin(), blocks, by_edge.begin() + shape().first_trap());
  profile::FlowCounts c = profile::reconstruct(shape().graph, flow_.chords, by_edge);
  for (size_t l = 0; l < shape().headers.size(); ++l) {
    uint64_t& block = c.blocks[shape().headers[l] - 1];
    block -= std::min(block, c.edges[shape().first_leaving() + l]);
  }
  return c;
}

}  // namespace uptier::jit
