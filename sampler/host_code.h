// HostCode: the address ranges of the host's machine code in this process, as of the last look.
//
// A walk in a signal handler asks whether a stack word may be the return address of host code that
// called one of our entries; such a call is indirect. Code that was loaded after the last look is
// not known.
//
//   Thread: look(): any, one at a time, while no other thread uses the object. The rest: any,
//   async-signal-safe.
#pragma once

#include <cstdint>

namespace uptier::sampler {

class HostCode {
 public:
  // Records the code that the loader has loaded now. Allocates nothing.
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
