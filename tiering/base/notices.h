// Notices: messages about mistakes that an embedder may not notice, each written once in a
// runtime's life.
//
// Law: slow paths only count (LossReport). The message is written later by a thread without guest
// frames: the worker, a thread that flushes or detaches, or the end of the runtime.
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

  // Writes the message the first time that `count` is not 0. Cost: a load.
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
