// When the host of a method that was retired is not asked any more.
//
// The law: a host is asked for a method by calls and compilations while it is in service, and from
// then on by frames alone, which leave their code for host_resume or for baseline code that is
// made of `build`. Such a frame is in a version of the method's own, or in one that has its body in
// it. So these are counted (Method::holds), and as one more who looked at the method when it went:
//
//   retired --(no holds, no compilation that began before)--> its enterable code retired
//           --(that freed, too)--> gone
//
// Enterable code has nothing to leave for: its guards go to the host, by host_resume, and so the
// code is waited for; but nobody goes into it any more.
//
//   Thread: the caller holds the state mutex, but for tell_hosts() and what is behind it. Hosts are
//           told without it, and by no thread but the program's own.
#include <algorithm>

#include "tiering/runtime_impl.h"

namespace uptier::tiering {

void RuntimeImpl::hold_locked(const Version& v) {
  if (!v.enterable) ++method(v.method.index()).holds;
  for (uint32_t body : v.bodies) ++method(body).holds;
}

// Places stay with their methods as long as a version means them, so these are the same as before.
void RuntimeImpl::let_go_locked(const Version& v) {
  Method& m = method(v.method.index());
  if (!v.enterable) {
    let_go_locked(m);
  } else if (m.retired && m.holds == 0) {
    left_.push_back(&m);
  }
  for (uint32_t body : v.bodies) let_go_locked(method(body));
}

void RuntimeImpl::let_go_locked(Method& m) {
  if (--m.holds == 0 && m.host_use == HostUse::kUntilGone) left_.push_back(&m);
}

// Returns whether code was retired, which may be free at once.
bool RuntimeImpl::leave_hosts_locked() {
  bool retired = false;
  std::erase_if(left_, [&](Method* m) {
    bool compiles = !looking_.empty() && *looking_.begin() < m->removed_at;
    if (compiles) return false;
    // A compilation has put its body into other code: that comes here when it is freed.
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
    m->host_use = HostUse::kTold;
    tell_later_locked(*m);
    return true;
  });
  return retired;
}

void RuntimeImpl::tell_later_locked(Method& m) {
  gone_.push_back(&m);
  hosts_wait_.store(true, std::memory_order_relaxed);
}

// The end of the runtime: nothing runs.
void RuntimeImpl::leave_all_hosts() {
  {
    std::lock_guard lock(state_mutex_);
    for (auto& m : methods_.all()) {
      if (m->host_use != HostUse::kUntilGone) continue;
      for (auto& v : m->versions) v->give_back();
      m->host_use = HostUse::kTold;
      tell_later_locked(*m);
    }
  }
  tell_hosts();
}

// A method has its place until its host has been told.
void RuntimeImpl::tell_hosts() noexcept {
  if (!hosts_wait_.load(std::memory_order_relaxed)) return;  // whoever comes next tells
  std::unique_lock lock(state_mutex_);
  while (!gone_.empty()) {
    Method& m = *gone_.front();
    gone_.pop_front();
    m.teller = std::this_thread::get_id();
    lock.unlock();
    m.host.gone(m.id);
    lock.lock();
    m.host_use = HostUse::kOver;
    told_.notify_all();
  }
  hosts_wait_.store(false, std::memory_order_relaxed);
}

// Waits while others tell hosts of these, which may die when they have been told.
void RuntimeImpl::await_tellers(std::span<const MethodId> methods) {
  std::unique_lock lock(state_mutex_);
  told_.wait(lock, [&] {
    return std::ranges::none_of(methods, [&](MethodId id) {
      const Method* m = known(id);
      return m != nullptr && m->host_use == HostUse::kTold &&
             m->teller != std::this_thread::get_id();
    });
  });
}

// Whether `build` may be asked. The caller holds the method's compile_mutex, for which waits who says
// that it may not.
bool RuntimeImpl::may_ask_host(const Method& m) const {
  std::lock_guard lock(state_mutex_);
  return m.host_use == HostUse::kServes || m.host_use == HostUse::kUntilGone;
}

}  // namespace uptier::tiering
