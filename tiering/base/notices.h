// Notices: what an embedder may get wrong without noticing, each said once in a runtime's life.
//
// Law: slow paths only count (LossReport); who comes next with nothing of the guest's below, the worker,
// who flushes or detaches, and the end of the runtime, looks at what was counted and says it.
//
//   Thread: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tiering/base/log.h"

namespace uptier::tiering {

enum class Notice : uint8_t {
  kUnattached,
  kKeysShared,
  kUnstable,
  kNamesLost,
  kFlushesLost,
  kCount
};

class Notices {
 public:
  explicit Notices(const Log& log) : log_(log) {}

  // Says it if `count` is not 0, the first time that it is not. Cost: a load.
  void say_once(Notice n, uint64_t count) noexcept {
    bool said = said_[static_cast<size_t>(n)].load(std::memory_order_relaxed);
    if (count != 0 && !said) say_slow(n);
  }

 private:
  void say_slow(Notice n) noexcept;

  const Log& log_;
  std::array<std::atomic<bool>, static_cast<size_t>(Notice::kCount)> said_{};
};

}  // namespace uptier::tiering
