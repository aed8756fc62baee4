#include "jit/code/poll_words.h"

#include <utility>

#include "profile/base/wall.h"

namespace uptier::jit {

static_assert(sizeof(PollWord) == sizeof(uint32_t), "code reads the word as it is");

PollRun PollWords::take(uint32_t count) {
  const Held lock(mutex_);
  PollRun run;
  std::vector<PollWord*>& used = free_[count];
  if (!used.empty()) {
    run.words_ = {used.back(), count};
    used.pop_back();
  } else if (count != 0 && count <= left_.size()) {
    run.words_ = left_.first(count);
    left_ = left_.subspan(count);
  }
  if (!run.words_.empty()) run.all_ = this;
  return run;
}

void PollWords::give_back(std::span<PollWord> words) noexcept {
  for (PollWord& w : words) w.store(0, std::memory_order_relaxed);  // the lock orders it
  const Held lock(mutex_);
  // If memory for the list is refused, the words are lost.
  finishes([&] {
    mutex_.known_held();
    free_[words.size()].push_back(words.data());
  });
}

PollRun::PollRun(PollRun&& other) noexcept
    : all_(std::exchange(other.all_, nullptr)), words_(std::exchange(other.words_, {})) {}

PollRun& PollRun::operator=(PollRun&& other) noexcept {
  std::swap(all_, other.all_);
  std::swap(words_, other.words_);
  return *this;
}

PollRun::~PollRun() {
  if (all_ != nullptr) all_->give_back(words_);
}

}  // namespace uptier::jit
