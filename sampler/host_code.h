// HostCode: where the process has machine code that is not ours, as of the last look.
//
// A walk in a signal handler asks whether a word may be the return address of host code that called an entry
// of ours: such a call is indirect. Code that was loaded after the last look is not known.
//
//   Thread: look() any, one at a time, while nobody asks; the rest any, async-signal-safe.
#pragma once

#include <cstdint>

namespace uptier::sampler {

class HostCode {
 public:
  // Looks at what the loader has loaded now. Allocates nothing.
  void look();
  // Returns whether `pc` follows an indirect call in host code.
  bool called_by_address(uint64_t pc) const noexcept;

 private:
  static constexpr uint32_t kMost = 512;
  struct Range {
    uint64_t from, to;
  };
  bool holds(uint64_t from, uint64_t to) const noexcept;

  Range ranges_[kMost] = {};
  uint32_t count_ = 0;
};

}  // namespace uptier::sampler
