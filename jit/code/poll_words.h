// PollWords: the words that loops of optimized code poll: one for each loop of each version.
//
// They lie in the data of the code space, so that code reads a word relative to rip, without a
// register. 0 means: continue. The words are given back with their version, when no code that reads
// them is left, and are 0 for the next version.
//
//   Thread: take() and giving back take a lock; a word itself is an atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "uptier/thread_safety.h"

namespace uptier::jit {

using PollWord = std::atomic<uint32_t>;

class PollWords;

// The words of one version; movable, one owner. May be empty.
class PollRun {
 public:
  PollRun() = default;
  PollRun(PollRun&& other) noexcept;
  PollRun& operator=(PollRun&& other) noexcept;
  ~PollRun();

  std::span<PollWord> words() const { return words_; }

 private:
  friend class PollWords;
  PollWords* all_ = nullptr;
  std::span<PollWord> words_;
};

class PollWords {
 public:
  // `data`: zeroed, 4-aligned, for the life of this object and of all runs.
  explicit PollWords(std::span<uint8_t> data)
      : left_(reinterpret_cast<PollWord*>(data.data()), data.size() / sizeof(PollWord)) {}
  PollWords(const PollWords&) = delete;
  PollWords& operator=(const PollWords&) = delete;

  // Returns `count` words that are 0, or an empty run if fewer are left.
  PollRun take(uint32_t count);

 private:
  friend class PollRun;
  void give_back(std::span<PollWord> words) noexcept;

  CheckedLock<std::mutex> mutex_;
  std::span<PollWord> left_ UPTIER_GUARDED_BY(mutex_);  // never taken yet
  // Keyed by length.
  std::map<size_t, std::vector<PollWord*>> free_ UPTIER_GUARDED_BY(mutex_);
};

}  // namespace uptier::jit
