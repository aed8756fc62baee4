// TallyWords: allocates the words in which optimized code counts, and adds up their counts.
//
//   count of a word = counts of ended threads in it + counts of current threads in it
//                     - the same sum at the time of allocation
//
// A word belongs to one version at a time. It is reused only after the version's code was freed, so
// no frame adds to it for the previous version.
//
//   Thread: take() and give_unused(): any; all else: with the runtime's state mutex.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "jit/code/tally_table.h"
#include "sampler/context.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/threads.h"
#include "uptier/thread_safety.h"

namespace uptier::tiering {

class TallyWords final : public jit::TallySource {
 public:
  explicit TallyWords(const Threads& threads) : threads_(threads) {}

  std::optional<uint32_t> take(uint32_t count) override;
  void give_unused(uint32_t first, uint32_t count) noexcept override;

  // Takes back words of code that was freed.
  void give(uint32_t first, uint32_t count) UPTIER_REQUIRES(state_lock);
  // Returns the amount added to a word since it was allocated.
  uint64_t count(uint32_t word) const UPTIER_REQUIRES(state_lock);
  // A thread detaches: its counts are kept.
  void keep(sampler::ThreadContext& leaving);
  // Number of versions that count nothing because no words were left.
  uint64_t refused() const;
  const Threads& threads() const { return threads_; }

 private:
  uint64_t sum(uint32_t word) const UPTIER_REQUIRES(state_lock);

  const Threads& threads_;
  std::vector<uint64_t> gone_, base_;  // by word; may be short

  using Lock = CheckedLock<std::mutex>;
  mutable Lock lock_;
  uint32_t used_ UPTIER_GUARDED_BY(lock_) = 0;  // words that were ever allocated
  // Free words: runs of the same length, by length.
  std::map<uint32_t, std::vector<uint32_t>> free_ UPTIER_GUARDED_BY(lock_);
  uint64_t refused_ UPTIER_GUARDED_BY(lock_) = 0;
};

}  // namespace uptier::tiering
