#include "tiering/compile/compile_turns.h"

#include <algorithm>
#include <cassert>

namespace uptier::tiering {

bool CompileTurns::any_here() const noexcept {
  // Relaxed: the count includes the thread's own turns.
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  Held lock(mutex_);
  return std::ranges::any_of(
      turns_, [](const Turn& t) { return t.thread == std::this_thread::get_id() && !t.waits; });
}

// Returns the turn of the thread that has the method, or null.
const CompileTurns::Turn* CompileTurns::taken_for(const Method* m) const {
  auto has = [&](const Turn& t) { return t.method == m && !t.waits; };
  assert(std::ranges::count_if(turns_, has) <= 1);  // one thread at a time has a method
  auto at = std::ranges::find_if(turns_, has);
  return at == turns_.end() ? nullptr : &*at;
}

// Says whether the thread has this turn, or whether the turn's owner waits, directly or indirectly,
// for the thread. There is no cycle: a thread that would have closed one was refused.
bool CompileTurns::waits_for(const Turn& has, std::thread::id thread) const {
  assert(!has.waits);
  const Turn* holder = &has;
  while (holder != nullptr && holder->thread != thread) {
    auto wants = [&](const Turn& t) { return t.thread == holder->thread && t.waits; };
    auto wait = std::ranges::find_if(turns_, wants);
    holder = wait == turns_.end() ? nullptr : taken_for(wait->method);
  }
  return holder != nullptr;
}

void CompileTurns::forget_dropped(const void* frame) noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) return;
  {
    Held lock(mutex_);
    std::erase_if(turns_, [&](const Turn& t) {
      return t.thread == std::this_thread::get_id() && t.owner < frame;
    });
    count();
  }
  given_back_.notify_all();
}

CompileTurn::CompileTurn(CompileTurns& all, const Method& m, If wait) : all_(all) {
  const std::thread::id thread = std::this_thread::get_id();
  Held lock(all_.mutex_);
  all_.turns_.push_back({this, &m, thread, true});
  all_.count();
  while (const CompileTurns::Turn* has = all_.taken_for(&m)) {
    if (wait == If::kFree || all_.waits_for(*has, thread)) break;
    all_.given_back_.wait(lock);
  }
  auto mine =
      std::ranges::find(all_.turns_, static_cast<const void*>(this), &CompileTurns::Turn::owner);
  assert(mine != all_.turns_.end() && mine->waits);
  taken_ = all_.taken_for(&m) == nullptr;
  if (taken_) {
    mine->waits = false;
    return;
  }
  all_.turns_.erase(mine);
  all_.count();
}

CompileTurn::~CompileTurn() {
  if (!taken_) return;
  {
    Held lock(all_.mutex_);
    std::erase_if(all_.turns_, [&](const CompileTurns::Turn& t) { return t.owner == this; });
    all_.count();
  }
  all_.given_back_.notify_all();
}

}  // namespace uptier::tiering
