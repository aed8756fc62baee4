// BlockCounts: the execution counts of the blocks of a function and of the bodies inlined into it.
//
// Indexed by body and block site. The counts of an inlined body are those of its method, scaled so
// that its entry runs as often as the call that it replaces. They are estimates: the number of
// observed executions, times the number of executions that one observed execution stands for.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

class BlockCounts {
 public:
  BlockCounts() = default;
  // The counts of the function's own body, by block site - 1; may be too short. Empty: nothing is
  // known of it, nor of the inlined bodies.
  BlockCounts(std::span<const uint64_t> own, double sample = 1) {
    if (!own.empty()) add({own.begin(), own.end()}, static_cast<float>(sample));
  }

  BlockCounts(const std::vector<uint64_t>& own) : BlockCounts(std::span(own)) {}

  bool empty() const { return of_.empty(); }
  // Adds the counts of the next inlined body; `counts` is empty if nothing is known of it.
  void add(std::vector<float> counts, float sample = 1) {
    of_.push_back(std::move(counts));
    samples_.push_back(sample);
  }
  // Returns the counts of the inlined bodies, by Function::inlined.
  std::vector<std::vector<float>> of_inlined() const {
    if (of_.empty()) return {};
    return {of_.begin() + 1, of_.end()};
  }
  // Returns how often control passes the place of a block probe; 0 if unknown.
  float at(const Inst& probe) const {
    if (probe.body >= of_.size() || probe.aux - 1 >= of_[probe.body].size()) return 0;
    return of_[probe.body][probe.aux - 1] * part_of(probe);
  }
  // Returns the number of executions that one observed execution stands for.
  float sample(const Inst& probe) const {
    float one = probe.body < samples_.size() ? samples_[probe.body] : 1;
    one *= part_of(probe);
    return one >= kLeast ? std::min(one, kMost) : kLeast;
  }
  // Returns how many executions were observed.
  float seen(const Inst& probe) const { return at(probe) / sample(probe); }

 private:
  static constexpr float kLeast = 1e-6f, kMost = 1e30f;

  static float part_of(const Inst& probe) {
    bool part = resumes(probe) && probe_tag(probe) != 0;
    return part ? static_cast<float>(probe_tag(probe)) / kWholeShare : 1;
  }

  std::vector<std::vector<float>> of_;  // by body
  std::vector<float> samples_;          // by body
};

// Returns the block probe that says how often a block runs, or null.
inline const Inst* first_block_probe(const Function& f, Block b) {
  for (InstId i : f.block(b).insts) {
    if (is_block_probe(f.inst(i))) return &f.inst(i);
  }
  return nullptr;
}

// Returns the probe whose count the end of a block shares, or null.
inline const Inst* last_block_probe(const Function& f, Block b) {
  const Inst* last = nullptr;
  for (InstId i : f.block(b).insts) {
    if (is_block_probe(f.inst(i))) last = &f.inst(i);
  }
  return last;
}

}  // namespace uptier::jit
