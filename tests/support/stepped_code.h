// stepped_code.h: tools/step_counter.h for codes of tests.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/code/code.h"
#include "tools/step_counter.h"

namespace uptier::test {

class StepCounter : public tools::StepCounter {
 public:
  explicit StepCounter(const std::vector<const jit::Code*>& codes)
      : tools::StepCounter(ranges_of(codes)) {}

  // Returns how often the instruction at an offset started.
  uint64_t starts(const jit::Code& code, uint32_t offset) const {
    return tools::StepCounter::starts(reinterpret_cast<uintptr_t>(code.at(offset)));
  }

 private:
  static std::vector<Range> ranges_of(const std::vector<const jit::Code*>& codes) {
    std::vector<Range> ranges;
    for (const jit::Code* c : codes) {
      ranges.push_back({reinterpret_cast<uintptr_t>(c->base()), c->hot_size()});
      ranges.push_back({reinterpret_cast<uintptr_t>(c->cold_base()), c->size() - c->hot_size()});
    }
    return ranges;
  }
};

}  // namespace uptier::test
