#include "tiering/code/removed.h"

#include <algorithm>
#include <cstring>

#include "tiering/runtime_impl.h"

namespace uptier::tiering {

StillHere::StillHere(RuntimeImpl& runtime) noexcept : thread_(runtime.here()) {
  bool runs = thread_ != nullptr &&
              thread_->blocked.load(std::memory_order_relaxed) == AttachedThread::kRunning;
  if (!runs) thread_ = nullptr;
  if (runs) thread_->enter_blocked(__builtin_frame_address(0));
}

StillHere::~StillHere() {
  if (thread_ != nullptr) thread_->leave_blocked();
}

LookingAround::LookingAround(RuntimeImpl& runtime) : runtime_(runtime) {
  std::lock_guard lock(runtime_.state_mutex_);
  at_ = runtime_.looking_.insert(runtime_.removals_);
}

LookingAround::~LookingAround() {
  std::lock_guard lock(runtime_.state_mutex_);
  runtime_.looking_.erase(at_);
  if (!runtime_.left_.empty()) runtime_.reclaim_locked();  // that may have waited for this
}

bool RuntimeImpl::removed_meanwhile(MethodId id) const {
  std::lock_guard lock(state_mutex_);
  const Method* m = known(id);
  return m != nullptr && m->removed && !looking_.empty() && m->removed_at > *looking_.begin();
}

namespace {

bool means_one_of(const Version& v, const std::vector<bool>& places) {
  return std::ranges::any_of(v.refers_to, [&](uint32_t p) { return places[p]; });
}

bool has(const Method& m, SlotKind kind) {
  return std::ranges::any_of(m.probes->schema().slots,
                             [&](const Slot& s) { return s.kind == kind; });
}

}  // namespace

// ---- Which places may go ----------------------------------------------------------------------

// Those of the oldest removals but for the last `kept`, as far as nothing runs the methods' own code.
// What frames that leave others' code go on in goes with those (gone.cc).
std::vector<bool> RuntimeImpl::places_to_free(size_t kept) const {
  std::vector<bool> places(methods_.all().size());
  size_t end = removed_.size() - std::min(kept, removed_.size());
  for (size_t i = 0; i < end; ++i) {
    const Method& m = method(removed_[i]);
    if (!looking_.empty() && *looking_.begin() < m.removed_at) break;  // later ones neither
    places[removed_[i]] = std::ranges::all_of(m.versions, [&](const auto& v) {
      return v->freed || (v->enterable && m.host_use == HostUse::kUntilGone);
    });
  }
  return places;
}

// Takes code out of service that means one of the methods. It is made anew at the next call.
void RuntimeImpl::withdraw_what_refers_to_locked(const std::vector<bool>& places) {
  for (const auto& m : methods_.all()) {
    auto means = [&](const auto& v) { return !v->freed && means_one_of(*v, places); };
    bool in_service =
        std::ranges::any_of(m->versions, [&](const auto& v) { return !v->retired && means(v); });
    if (in_service) withdraw_locked(*m);
    for (const auto& v : m->versions) {
      if (v->tier == Tier::kOptimized && means(v)) v->call_back(OsrOut::kAnywhere);
    }
  }
}

void RuntimeImpl::keep_what_code_means_locked(std::vector<bool>& places) const {
  for (const auto& m : methods_.all()) {
    bool left = !m->looked_at && m->host_use == HostUse::kOver;
    if (!left) places[m->id.index()] = false;
    for (const auto& v : m->versions) {
      if (v->freed) continue;
      for (uint32_t p : v->refers_to) places[p] = false;
    }
  }
}

// Nothing that is kept of other methods leads to these by an id.
void RuntimeImpl::forget_paths_locked(const std::vector<bool>& places) {
  auto gone = [&](const jit::InlinePath& path) {
    return std::ranges::any_of(path, [&](const jit::InlineStep& step) {
      return !is_method(step.method) &&
             (known(step.method) == nullptr || places[step.method.index()]);
    });
  };
  for (const auto& m : methods_.all()) {
    std::erase_if(m->inlined_streams, [&](const auto& s) { return gone(s.first.first); });
    if (SeenPhase* phase = m->seen_phase.made()) {
      std::erase_if(phase->inlined, [&](const auto& s) { return gone(s.first); });
      std::erase_if(phase->inlined_targets, [&](const auto& s) { return gone(s.first); });
    }
    std::erase_if(m->stub_callers, [](const Version* v) { return v->freed; });
  }
}

void RuntimeImpl::free_places_locked(size_t kept) {
  reclaim_locked();
  drain_locked();
  std::vector<bool> places = places_to_free(kept);
  if (std::ranges::find(places, true) == places.end()) return;
  withdraw_what_refers_to_locked(places);
  reclaim_locked();
  keep_what_code_means_locked(places);
  forget_in_tables_locked(places);
  forget_paths_locked(places);
  std::erase_if(removed_, [&](uint32_t index) {
    if (places[index]) free_places_.push_back(index);
    return places[index];
  });
}

// ---- Giving one away --------------------------------------------------------------------------

// Clears what the runtime and its threads hold of a method whose place goes to another.
void RuntimeImpl::forget_locked(Method& m) {
  uint32_t index = m.id.index();
  // What frames have counted since it was retired; they are gone.
  if (m.retired && !m.forgotten) flush_removed_locked(m, HostUse::kOver);
  if (!m.forgotten) losses_.methods_forgotten++;
  m.forgotten = true;
  observer_.forget(m);
  if (budget_) budget_->forget(index);
  for (const auto& v : m.versions) forget_caller_locked(*v);
  if (options_.gap == GapMode::kExact) {
    stubs_->shared_countdown(m.id).store(0, std::memory_order_relaxed);
  }
  for (const auto& t : threads_) {
    sampler::MethodState& s = t->state(m.id);
    static constexpr sampler::MethodState kUnseen{};
    if (std::memcmp(&s, &kUnseen, sizeof s) == 0) continue;  // its page may not exist
    // A record in the ring has the address of the slab's word that counts it when it is lost.
    if (has(m, SlotKind::kLog)) keep_log_locked(*t);
    if (s.slab != nullptr && s.slab != m.shared) {
      t->slabs().give(s.slab, m.slab_words.load(std::memory_order_relaxed));
    }
    give_optimized_slab(*t, s);
    std::memset(static_cast<void*>(&s), 0, sizeof s);
  }
}

Result<RuntimeImpl::Place> RuntimeImpl::take_place_locked(const std::string& name) {
  uint32_t count = methods_.size();
  Status room = count < options_.max_methods ? stubs_->ensure(MethodId(count)) : Status{};
  bool fresh = count < options_.max_methods && room.ok();
  uint64_t kept = live_.removed_kept;
  bool due = removed_.size() > kept && removals_ >= next_freeing_;
  if (free_places_.empty() && !removed_.empty() && (due || !fresh)) {
    free_places_locked(fresh ? kept : std::min<size_t>(kept, removed_.size() / 2));
    if (free_places_.empty() && !fresh) free_places_locked(0);
    next_freeing_ = removals_ + std::max<uint64_t>(kLeastRemovals, count / 8);
  }
  if (!free_places_.empty()) {
    Method& old = method(free_places_.front());
    free_places_.pop_front();
    MethodId id(old.id.index(), old.id.generation() + 1);
    forget_locked(old);
    return Place{id, true};
  }
  if (!room) return room.error();
  if (fresh) return Place{MethodId(count)};
  std::string waiting = removed_.empty() ? ""
                                         : ", and something still means each of the " +
                                               std::to_string(removed_.size()) + " removed ones";
  return Error{ErrorCode::kResourceExhausted,
               name + ": the runtime has max_methods = " + std::to_string(options_.max_methods) +
                   " methods" + waiting};
}

}  // namespace uptier::tiering
