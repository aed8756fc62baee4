// poll.cc: waiting for clocks and descriptors.
//
// One loop: wait until the earliest deadline or a ready descriptor, read the clocks again, and
// return as soon as there is an event. A deadline is kept on the clock that the guest named, so a
// wait that ends early, or an interrupted one, is only another turn.
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "embed/wasi/state.h"

namespace uptier::wasm::wasi {
namespace {

using namespace layout;  // NOLINT: field offsets only

// Bounds what one call may make the host allocate and poll.
constexpr uint32_t kMaxSubscriptions = 4096;

struct Subscription {
  uint64_t userdata;
  uint64_t deadline;  // of a clock, on `clock`
  uint32_t clock;
  uint32_t fd;
  int32_t poll_at;  // index of the pollfd; -1: none
  uint8_t type;
  Errno error;  // known before waiting: the event is ready at once
};

struct Poll {
  GrowingArray<Subscription> subscriptions;
  GrowingArray<pollfd> descriptors;
};

Errno start_clock(State& state, const uint8_t* raw, Subscription* s) {
  s->clock = get32(raw + kSubClockId);
  const uint64_t timeout = get64(raw + kSubTimeout);
  const uint16_t flags = get16(raw + kSubClockFlags);
  if (flags & ~kClockAbstime) return Errno::kInval;
  if (s->clock == kProcessCpu || s->clock == kThreadCpu) return Errno::kNotsup;
  const bool absolute = flags & kClockAbstime;
  // A relative wait on the real-time clock is not to be moved by somebody setting that clock.
  if (s->clock == kRealtime && !absolute) s->clock = kMonotonic;
  uint64_t now = 0;
  UPTIER_WASI_TRY(from_host(state.system->clock_time(s->clock, &now)));
  s->deadline = absolute ? timeout : now + std::min(timeout, UINT64_MAX - now);
  return Errno::kSuccess;
}

// Returns ENOMEM only; what is wrong with the subscription itself becomes its event.
Errno start_descriptor(State& state, const uint8_t* raw, Subscription* s, Poll* poll) {
  s->fd = get32(raw + kSubFd);
  FdEntry* entry = nullptr;
  s->error = state.fds.require(s->fd, kPollFdReadwrite, &entry);
  if (s->error != Errno::kSuccess) return Errno::kSuccess;
  pollfd p = {};
  p.fd = entry->host.get();
  p.events = s->type == kEventFdRead ? POLLIN : POLLOUT;
  s->poll_at = static_cast<int32_t>(poll->descriptors.size());
  return poll->descriptors.append(p) ? Errno::kSuccess : Errno::kNomem;
}

Errno start(State& state, const uint8_t* raw, Poll* poll) {
  Subscription s = {};
  s.userdata = get64(raw + kSubUserdata);
  s.type = raw[kSubTag];
  s.poll_at = -1;
  switch (s.type) {
    case kEventClock: s.error = start_clock(state, raw, &s); break;
    case kEventFdRead:
    case kEventFdWrite: UPTIER_WASI_TRY(start_descriptor(state, raw, &s, poll)); break;
    default: return Errno::kInval;
  }
  return poll->subscriptions.append(s) ? Errno::kSuccess : Errno::kNomem;
}

// Returns how long to wait, in ns: 0 when an event is ready, negative when only descriptors count.
int64_t time_left(State& state, Poll& poll) {
  int64_t least = -1;
  for (Subscription& s : poll.subscriptions) {
    if (s.error != Errno::kSuccess) return 0;
    if (s.type != kEventClock) continue;
    uint64_t now = 0;
    s.error = from_host(state.system->clock_time(s.clock, &now));
    if (s.error != Errno::kSuccess || now >= s.deadline) return 0;
    const int64_t left = static_cast<int64_t>(std::min<uint64_t>(s.deadline - now, INT64_MAX));
    least = least < 0 ? left : std::min(least, left);
  }
  return least;
}

// The number of bytes that can be read or written without waiting, as far as the host tells.
uint64_t ready_bytes(const Subscription& s, const FdEntry& entry) {
  if (s.type == kEventFdWrite) return 1;
  if (entry.type == FileType::kRegularFile) {
    struct stat st;
    const off_t at = ::lseek(entry.host.get(), 0, SEEK_CUR);
    if (at < 0 || ::fstat(entry.host.get(), &st) != 0 || st.st_size <= at) return 0;
    return static_cast<uint64_t>(st.st_size - at);
  }
  int bytes = 0;
  if (::ioctl(entry.host.get(), FIONREAD, &bytes) != 0 || bytes < 0) return 0;
  return static_cast<uint64_t>(bytes);
}

// Fills `event` when the subscription is ready. Returns whether it is.
bool finish(State& state, const Subscription& s, const Poll& poll, uint8_t* event) {
  Errno error = s.error;
  uint64_t bytes = 0;
  uint16_t flags = 0;
  if (error == Errno::kSuccess && s.type == kEventClock) {
    uint64_t now = 0;
    error = from_host(state.system->clock_time(s.clock, &now));
    if (error == Errno::kSuccess && now < s.deadline) return false;
  } else if (error == Errno::kSuccess) {
    const short revents = poll.descriptors[static_cast<size_t>(s.poll_at)].revents;
    if (revents == 0) return false;
    if (revents & POLLNVAL) error = Errno::kBadf;
    if (revents & POLLHUP) flags = kEventHangup;
    const FdEntry* entry = state.fds.find(s.fd);
    if (error == Errno::kSuccess && entry != nullptr) bytes = ready_bytes(s, *entry);
    // The far end of a pipe is gone: a write would fail, and says so here.
    if ((revents & POLLERR) && s.type == kEventFdWrite) flags = kEventHangup;
  }
  std::memset(event, 0, kEvent);
  put64(event + kEventUserdata, s.userdata);
  put16(event + kEventError, static_cast<uint16_t>(error));
  event[kEventType] = s.type;
  put64(event + kEventNbytes, bytes);
  put16(event + kEventFlags, flags);
  return true;
}

uint32_t collect(State& state, Poll& poll, uint8_t* out) {
  uint32_t events = 0;
  for (const Subscription& s : poll.subscriptions) {
    if (finish(state, s, poll, out + events * kEvent)) ++events;
  }
  return events;
}

}  // namespace

// (pointer to subscriptions, pointer to events, number of both, pointer to the number of events)
Errno poll_oneoff(State& state, GuestMemory memory, Args a) noexcept {
  const uint32_t count = a.u32(2);
  const uint8_t* in = memory.at(a.u32(0), uint64_t{count} * kSubscription);
  uint8_t* out = memory.at(a.u32(1), uint64_t{count} * kEvent);
  if (in == nullptr || out == nullptr || !memory.contains(a.u32(3), 4)) return Errno::kFault;
  if (count == 0 || count > kMaxSubscriptions) return Errno::kInval;
  Poll poll;
  for (uint32_t i = 0; i < count; ++i) {
    // A copy: another thread of the guest may write to it meanwhile.
    uint8_t raw[kSubscription];
    std::memcpy(raw, in + uint64_t{i} * kSubscription, sizeof raw);
    UPTIER_WASI_TRY(start(state, raw, &poll));
  }
  for (;;) {
    const int64_t left = time_left(state, poll);
    const std::span<pollfd> descriptors(poll.descriptors.data(), poll.descriptors.size());
    const int error = state.system->wait(descriptors, left);
    if (error != 0 && !tries_again(error)) return from_host(error);
    if (error == EINTR) {
      for (pollfd& p : descriptors) p.revents = 0;
    }
    const uint32_t events = collect(state, poll, out);
    if (events == 0) continue;
    memory.store32(a.u32(3), events);
    return Errno::kSuccess;
  }
}

}  // namespace uptier::wasm::wasi
