#include "tiering/model/places.h"

#include <algorithm>
#include <cassert>

#include "profile/base/wall.h"

namespace uptier::tiering {

bool means_one_of(const Version& v, const Places::Set& places) {
  assert(v.freed || v.refers_to.empty() || v.refers_to.back() < places.size());
  return !v.freed && std::ranges::any_of(v.refers_to, [&](uint32_t p) { return places[p]; });
}

void Places::begin_look(Look& look) noexcept {
  assert(last_look_ == nullptr || last_look_->since <= removals_);  // ordered by begin
  look.since = removals_;
  look.before = last_look_;
  look.after = nullptr;  // a look may be used again
  (last_look_ == nullptr ? first_look_ : last_look_->after) = &look;
  last_look_ = &look;
}

void Places::end_look(Look& look) noexcept {
  assert(look.before != nullptr ? look.before->after == &look : first_look_ == &look);
  assert(look.after != nullptr ? look.after->before == &look : last_look_ == &look);
  (look.before == nullptr ? first_look_ : look.before->after) = look.after;
  (look.after == nullptr ? last_look_ : look.after->before) = look.before;
}

// ---- Places that may be reused ----------------------------------------------------------------

Places::Set Places::candidates(size_t kept) const {
  Set places(methods_.all().size());
  size_t end = removed_.size() - std::min(kept, removed_.size());
  for (size_t i = 0; i < end; ++i) {
    const Method& m = methods_.at(removed_[i]);
    assert(m.removed_at != 0 && !methods_.serves(m.id));
    if (removed_meanwhile(m)) break;  // later ones were, too
    places[removed_[i]] = std::ranges::all_of(m.versions, [&](const auto& v) {
      state_lock.known_held();
      return v->freed || (v->enterable && m.host_use == HostUse::kUntilGone);
    });
  }
  return places;
}

void Places::keep_what_code_means(Set& places) const {
  assert(places.size() == methods_.all().size());
  for (const auto& m : methods_.all()) {
    bool left = !m->looked_at && m->host_use == HostUse::kOver;
    if (!left) places[m->id.index()] = false;
    for (const auto& v : m->versions) {
      if (v->freed) continue;
      for (uint32_t p : v->refers_to) places[p] = false;
    }
  }
}

void Places::forget_paths(const Set& places) const {
  auto gone = [&](const jit::InlinePath& path) {
    return std::ranges::any_of(path, [&](const jit::InlineStep& step) {
      return !methods_.serves(step.method) &&
             (methods_.known(step.method) == nullptr || places[step.method.index()]);
    });
  };
  for (const auto& m : methods_.all()) {
    if (Flushed* seen = m->flushed.made()) {
      std::erase_if(seen->inlined_streams, [&](const auto& s) { return gone(s.first.first); });
    }
    if (SeenPhase* phase = m->flushed->seen_phase.made()) {
      std::erase_if(phase->inlined, [&](const auto& s) { return gone(s.first); });
      std::erase_if(phase->inlined_targets, [&](const auto& s) { return gone(s.first); });
    }
    if (std::vector<Version*>* callers = m->stub_callers.made()) {
      std::erase_if(*callers, [](const Version* v) { return v->freed; });
    }
  }
}

void Places::free(const Set& places) {
  assert(places.size() == methods_.all().size());
  std::erase_if(removed_, [&](uint32_t index) {
    // If there is no memory for a list node, the place stays with its method and is freed another
    // time.
    return places[index] && finishes([&] { free_.push_back(index); });
  });
}

// ---- Reusing a place --------------------------------------------------------------------------

std::optional<uint32_t> Places::take() {
  if (free_.empty()) return std::nullopt;
  uint32_t index = free_.front();
  assert(!methods_.serves(index));
  free_.pop_front();
  return index;
}

std::optional<size_t> Places::looks_for_more(bool fresh, uint64_t kept) const {
  bool due = removed_.size() > kept && removals_ >= next_look_;
  if (!free_.empty() || removed_.empty() || (!due && fresh)) return std::nullopt;
  return fresh ? kept : std::min<size_t>(kept, removed_.size() / 2);
}

void Places::looked_for_more() {
  next_look_ = removals_ + std::max<uint64_t>(kLeastRemovals, methods_.size() / 8);
}

}  // namespace uptier::tiering
