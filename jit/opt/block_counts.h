// BlockCounts: how often blocks run, of a function and of the bodies that are inlined into it.
//
// By body and block site. Counts of an inlined body are those of its method, scaled so that its
// entry runs as often as the call did that it stands for.
#pragma once

#include <span>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

class BlockCounts {
 public:
  BlockCounts() = default;
  // Of the function's own body, by block site - 1; may be too short. Empty: nothing is known of it,
  // nor of what is inlined.
  BlockCounts(std::span<const uint64_t> own) {
    if (!own.empty()) of_.emplace_back(own.begin(), own.end());
  }

  BlockCounts(const std::vector<uint64_t>& own) : BlockCounts(std::span(own)) {}

  bool empty() const { return of_.empty(); }
  // Adds the counts of the next inlined body. Nothing may be known of it: then it says nothing.
  void add(std::vector<float> counts) { of_.push_back(std::move(counts)); }
  // Returns how often the place of a block probe is passed; 0 for what is not known.
  float at(const Inst& probe) const {
    if (probe.body >= of_.size() || probe.aux - 1 >= of_[probe.body].size()) return 0;
    float count = of_[probe.body][probe.aux - 1];
    bool part = resumes(probe) && probe_tag(probe) != 0;
    return part ? count * static_cast<float>(probe_tag(probe)) / kWholeShare : count;
  }

 private:
  std::vector<std::vector<float>> of_;  // by body
};

// Returns the block probe that says how often a block runs, or null.
inline const Inst* first_block_probe(const Function& f, Block b) {
  for (InstId i : f.block(b).insts) {
    if (is_block_probe(f.inst(i))) return &f.inst(i);
  }
  return nullptr;
}

}  // namespace uptier::jit
