// clock.cc: clocks, and the operating system as the default WasiSystem.
#include <poll.h>
#include <sys/random.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "embed/wasi/state.h"

namespace uptier::wasm::wasi {
namespace {

bool host_clock(uint32_t clock, clockid_t* host) {
  switch (clock) {
    case kRealtime: *host = CLOCK_REALTIME; return true;
    case kMonotonic: *host = CLOCK_MONOTONIC; return true;
    case kProcessCpu: *host = CLOCK_PROCESS_CPUTIME_ID; return true;
    case kThreadCpu: *host = CLOCK_THREAD_CPUTIME_ID; return true;
    default: return false;
  }
}

using ClockCall = int (*)(clockid_t, timespec*);

int read_clock(ClockCall call, uint32_t clock, uint64_t* ns) {
  clockid_t host;
  timespec t;
  if (!host_clock(clock, &host)) return EINVAL;
  if (call(host, &t) != 0) return errno;
  // A real-time clock set before 1970 has no representation; the epoch is the nearest.
  *ns = t.tv_sec < 0
            ? 0
            : static_cast<uint64_t>(t.tv_sec) * kNsPerSecond + static_cast<uint64_t>(t.tv_nsec);
  return 0;
}

}  // namespace

int HostSystem::clock_resolution(uint32_t clock, uint64_t* ns) noexcept {
  return read_clock(::clock_getres, clock, ns);
}

int HostSystem::clock_time(uint32_t clock, uint64_t* ns) noexcept {
  return read_clock(::clock_gettime, clock, ns);
}

int HostSystem::random(std::span<uint8_t> out) noexcept {
  while (!out.empty()) {
    // getrandom gives at most 32 MiB - 1 a call (random(4)), and may give less.
    const ssize_t got = ::getrandom(out.data(), std::min<size_t>(out.size(), 1 << 20), 0);
    if (got < 0 && tries_again(errno)) continue;
    if (got < 0) return errno;
    out = out.subspan(static_cast<size_t>(got));
  }
  return 0;
}

int HostSystem::wait(std::span<pollfd> descriptors, int64_t timeout_ns) noexcept {
  timespec t = {};
  if (timeout_ns >= 0) {
    t.tv_sec = static_cast<time_t>(timeout_ns / static_cast<int64_t>(kNsPerSecond));
    t.tv_nsec = static_cast<long>(timeout_ns % static_cast<int64_t>(kNsPerSecond));
  }
  const int ready =
      ::ppoll(descriptors.data(), descriptors.size(), timeout_ns < 0 ? nullptr : &t, nullptr);
  return ready < 0 ? errno : 0;
}

Errno clock_res_get(State& state, GuestMemory memory, Args a) noexcept {
  if (!memory.contains(a.u32(1), 8)) return Errno::kFault;
  uint64_t ns = 0;
  UPTIER_WASI_TRY(from_host(state.system->clock_resolution(a.u32(0), &ns)));
  memory.store64(a.u32(1), ns);
  return Errno::kSuccess;
}

// (clock, precision wanted, pointer to the time): every clock here is as precise as the host's.
Errno clock_time_get(State& state, GuestMemory memory, Args a) noexcept {
  if (!memory.contains(a.u32(2), 8)) return Errno::kFault;
  uint64_t ns = 0;
  UPTIER_WASI_TRY(from_host(state.system->clock_time(a.u32(0), &ns)));
  memory.store64(a.u32(2), ns);
  return Errno::kSuccess;
}

}  // namespace uptier::wasm::wasi
