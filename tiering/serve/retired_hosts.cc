#include "tiering/serve/retired_hosts.h"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <thread>
#include <utility>

#include "profile/base/wall.h"

#include "tiering/base/state_lock.h"

namespace uptier::tiering {

void GoneHosts::hold_locked(const Version& v) {
  assert(!v.retired && !v.freed);
  if (!v.enterable) ++methods_.at(v.method.index()).holds;
  for (uint32_t body : v.bodies) ++methods_.at(body).holds;
}

// Places stay with their methods as long as a version refers to them, so these are still the same
// methods.
void GoneHosts::let_go_locked(const Version& v) {
  assert(v.freed);
  Method& m = methods_.at(v.method.index());
  if (!v.enterable) {
    let_go_locked(m);
  } else if (m.retired && m.holds == 0) {
    leave_later_locked(m);
  }
  for (uint32_t body : v.bodies) let_go_locked(methods_.at(body));
}

void GoneHosts::let_go_locked(Method& m) {
  assert(m.holds != 0);
  if (--m.holds == 0 && m.host_use == HostUse::kUntilGone) leave_later_locked(m);
}

void GoneHosts::leave_later_locked(Method& m) noexcept {
  finishes([&] { left_.push_back(&m); });
}

bool GoneHosts::leave_locked() {
  bool retired = false;
  std::erase_if(left_, [&](Method* m) {
    state_lock.known_held();
    if (places_.removed_meanwhile(*m)) return false;  // it may be compiled right now
    // A compilation has inlined its body into other code: this runs again when that code is freed.
    if (m->holds != 0 || m->host_use != HostUse::kUntilGone) return true;
    bool freed = true;
    m->enterable.store(nullptr, std::memory_order_release);
    for (auto& v : m->versions) {
      freed &= v->freed;
      if (v->retired) continue;
      reclaimer_.retire(*v);
      retired = true;
    }
    if (!freed) return true;
    assert(m->removed && m->holds == 0);
    m->host_use = HostUse::kTold;
    tell_later_locked(*m);
    return true;
  });
  return retired;
}

void GoneHosts::tell_later_locked(Method& m) noexcept {
  assert(m.host_use == HostUse::kTold && m.next_gone == nullptr);
  (first_gone_ == nullptr ? first_gone_ : last_gone_->next_gone) = &m;
  last_gone_ = &m;
  wait_.store(true, std::memory_order_relaxed);
}

void GoneHosts::leave_all() {
  {
    HeldState lock(state_mutex_);
    for (auto& m : methods_.all()) {
      if (m->host_use != HostUse::kUntilGone) continue;
      for (auto& v : m->versions) v->give_back();
      m->host_use = HostUse::kTold;
      tell_later_locked(*m);
    }
  }
  tell();
}

// A method keeps its place until its host has been told.
void GoneHosts::tell_slow() noexcept {
  HeldState lock(state_mutex_);
  while (first_gone_ != nullptr) {
    Method& m = *first_gone_;
    first_gone_ = std::exchange(m.next_gone, nullptr);
    assert(m.host_use == HostUse::kTold);  // serves -> until gone -> told -> over
    m.teller = std::this_thread::get_id();
    lock.unlock();
    m.host.gone(m.id);
    lock.lock();
    m.host_use = HostUse::kOver;
    told_.notify_all();
  }
  wait_.store(false, std::memory_order_relaxed);
}

void GoneHosts::await_tellers(std::span<const MethodId> methods) {
  HeldState lock(state_mutex_);
  told_.wait(lock, [&] {
    return std::ranges::none_of(methods, [&](MethodId id) {
      state_lock.known_held();
      const Method* m = methods_.known(id);
      return m != nullptr && m->host_use == HostUse::kTold &&
             m->teller != std::this_thread::get_id();
    });
  });
}

bool GoneHosts::may_ask(const Method& m) const {
  HeldState lock(state_mutex_);
  return m.host_use == HostUse::kServes || m.host_use == HostUse::kUntilGone;
}

}  // namespace uptier::tiering
