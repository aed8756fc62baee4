// budget.h: how much memory and work reading DWARF may take.
//
// Law: memory is at most 16 MiB and 16 bytes for each byte of the sections; steps are at most a million
// and 64 for each byte. A step is one attribute, opcode or entry. Honest files take
// less than a quarter of either. Containers charge their capacity before they allocate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace uptier::dwarf {

class Budget {
 public:
  static constexpr uint64_t kFreeMemory = uint64_t{16} << 20;
  static constexpr uint64_t kFreeSteps = 1'000'000;
  static constexpr uint64_t kNodeBytes = 128;  // of a map's node, with room to spare

  // For sections of this many bytes together.
  explicit Budget(uint64_t bytes)
      : memory_(kFreeMemory + 16 * bytes), steps_(kFreeSteps + 64 * bytes) {}

  // Takes steps. Returns false if there are not so many left; then none are left.
  bool step(uint64_t count = 1) {
    if (steps_ < count) return spent_ = true, steps_ = 0, false;
    steps_ -= count;
    return true;
  }
  // Takes memory. Returns false if there is not so much left; then the budget is spent.
  bool take(uint64_t bytes) {
    if (memory_ < bytes) return spent_ = true, false;
    memory_ -= bytes;
    return true;
  }
  void give_back(uint64_t bytes) { memory_ += bytes; }
  // Returns whether something was refused.
  bool spent() const { return spent_; }

  // Appends to a vector whose memory is of this budget. Returns false if there is none left.
  template <typename T>
  bool push(std::vector<T>& to, T value) {
    if (to.size() == to.capacity() && !grow(to)) return false;
    to.push_back(std::move(value));
    return true;
  }

 private:
  // Both blocks exist while the elements move.
  template <typename T>
  bool grow(std::vector<T>& v) {
    const size_t before = v.capacity();
    const size_t after = std::max<size_t>(16, before + before / 2);
    if (!take(after * sizeof(T))) return false;
    v.reserve(after);
    give_back(before * sizeof(T));
    return true;
  }

  uint64_t memory_;
  uint64_t steps_;
  bool spent_ = false;
};

}  // namespace uptier::dwarf
