#include "tiering/code/compile_turns.h"

#include <utility>

namespace uptier::tiering {

bool CompileTurns::any_here() const noexcept {
  std::lock_guard lock(mutex_);
  for (const CompileTurn* t = first_; t != nullptr; t = t->next_) {
    bool mine = t->thread_ == std::this_thread::get_id();
    if (mine && t->state_ == CompileTurn::State::kTaken) return true;
  }
  return false;
}

// Returns the turn of who has the method, or null.
const CompileTurn* CompileTurns::taken_for(const Method* m) const {
  for (const CompileTurn* t = first_; t != nullptr; t = t->next_) {
    if (t->method_ == m && t->state_ == CompileTurn::State::kTaken) return t;
  }
  return nullptr;
}

// Whether who has a turn is the thread, or waits for it, or for one that does. There is no circle in
// this, since whoever would have closed one was refused.
bool CompileTurns::waits_for(const CompileTurn& has, std::thread::id thread) const {
  const CompileTurn* holder = &has;
  while (holder != nullptr && holder->thread_ != thread) {
    const CompileTurn* wait = first_;
    while (wait != nullptr &&
           (wait->thread_ != holder->thread_ || wait->state_ != CompileTurn::State::kWaits)) {
      wait = wait->next_;
    }
    holder = wait == nullptr ? nullptr : taken_for(wait->method_);
  }
  return holder != nullptr;
}

CompileTurn::CompileTurn(CompileTurns& all, const Method& m, If wait) : all_(all), method_(&m) {
  std::unique_lock lock(all_.mutex_);
  next_ = std::exchange(all_.first_, this);
  while (const CompileTurn* has = all_.taken_for(method_)) {
    if (wait == If::kFree || all_.waits_for(*has, thread_)) {
      state_ = State::kRefused;
      return;
    }
    all_.given_back_.wait(lock);
  }
  state_ = State::kTaken;
}

CompileTurn::~CompileTurn() {
  {
    std::lock_guard lock(all_.mutex_);
    CompileTurn** at = &all_.first_;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
  }
  if (state_ == State::kTaken) all_.given_back_.notify_all();
}

}  // namespace uptier::tiering
