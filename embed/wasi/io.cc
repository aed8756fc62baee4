// io.cc: reading and writing.
//
// One guest call is one system call, so the host decides how much is transferred, and what is atomic:
// short counts reach the guest unchanged.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "embed/wasi/state.h"

namespace uptier::wasm::wasi {
namespace {

using namespace layout;  // NOLINT: field offsets only

constexpr int kMaxParts = IOV_MAX;  // what readv and writev take at once

struct Parts {
  iovec part[kMaxParts];
  int count = 0;
};

// Reads the guest's list of buffers, each of which must lie inside. Empty ones are left out. A
// list with more than kMaxParts is cut there: the call then transfers less than asked, which is
// always allowed. The whole table must lie inside, but buffers after the cut are not looked at.
Errno gather(GuestMemory memory, uint32_t table, uint32_t count, Parts* out) {
  if (!memory.contains(table, uint64_t{count} * kIovec)) return Errno::kFault;
  for (uint64_t i = 0; i < count && out->count < kMaxParts; ++i) {
    uint32_t address = 0, size = 0;
    memory.load32(table + i * kIovec + kIovecBuf, &address);
    memory.load32(table + i * kIovec + kIovecLength, &size);
    if (size == 0) continue;
    uint8_t* bytes = memory.at(address, size);
    if (bytes == nullptr) return Errno::kFault;
    out->part[out->count++] = iovec{bytes, size};
  }
  return Errno::kSuccess;
}

// The kernel caps one transfer at 0x7ffff000 bytes (read(2)), so the count fits the guest's u32.
Errno report(GuestMemory memory, uint32_t address, ssize_t transferred) {
  if (transferred < 0) return from_host(errno);
  memory.store32(address, static_cast<uint32_t>(transferred));
  return Errno::kSuccess;
}

// A borrowed stream is shared with its owner, so a guest's non-blocking mode is not set on it; the
// guest's calls poll first instead.
Errno would_block(const FdEntry& entry, short events) {
  if (entry.owned || !entry.nonblocking) return Errno::kSuccess;
  pollfd p = {entry.host.get(), events, 0};
  const int ready = retrying([&] { return ::poll(&p, 1, 0); });
  return ready == 0 ? Errno::kAgain : status_of(ready);
}

// Keeps the SIGPIPE of a write to a closed pipe from ending the host: blocks it for this thread,
// and takes it back if the write raised it. The guest gets EPIPE.
class PipeSignalGuard {
 public:
  explicit PipeSignalGuard(bool active) : active_(active) {
    if (!active_) return;
    sigset_t pending;
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalGuard() {
    if (!active_) return;
    const int saved = errno;
    const timespec now = {};
    if (raised_ && !was_pending_) {
      while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {}
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = saved;
  }
  PipeSignalGuard(const PipeSignalGuard&) = delete;
  PipeSignalGuard& operator=(const PipeSignalGuard&) = delete;

  void wrote(ssize_t result) { raised_ = result < 0 && errno == EPIPE; }

 private:
  const bool active_;
  bool was_pending_ = false;
  bool raised_ = false;
  sigset_t pipe_;
  sigset_t before_;
};

// pwritev ignores its offset on a descriptor in append mode (pwrite(2), BUGS), while the guest's
// call writes where it says. The mode is taken off for the moment of the call.
class AppendModeOff {
 public:
  explicit AppendModeOff(const FdEntry& entry) : fd_(entry.host.get()) {
    const int flags = entry.owned ? ::fcntl(fd_, F_GETFL) : -1;
    if (flags < 0 || !(flags & O_APPEND)) return;
    if (::fcntl(fd_, F_SETFL, flags & ~O_APPEND) == 0) restore_ = flags;
  }
  ~AppendModeOff() {
    const int saved = errno;
    if (restore_ >= 0) (void)::fcntl(fd_, F_SETFL, restore_);
    errno = saved;
  }
  AppendModeOff(const AppendModeOff&) = delete;
  AppendModeOff& operator=(const AppendModeOff&) = delete;

 private:
  const int fd_;
  int restore_ = -1;
};

// (fd, buffers, number of them, offset, pointer to the count)
struct At {
  Parts parts;
  FdEntry* entry = nullptr;
  off_t offset = 0;
};

Errno load_at(State& state, GuestMemory memory, Args a, Rights need, At* out) {
  UPTIER_WASI_TRY(gather(memory, a.u32(1), a.u32(2), &out->parts));
  if (!memory.contains(a.u32(4), 4)) return Errno::kFault;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), need | kFdSeek, &out->entry));
  if (a.u64(3) > INT64_MAX) return Errno::kInval;
  out->offset = static_cast<off_t>(a.u64(3));
  return Errno::kSuccess;
}

}  // namespace

// (fd, buffers, number of them, pointer to the count)
Errno fd_read(State& state, GuestMemory memory, Args a) noexcept {
  Parts parts;
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(gather(memory, a.u32(1), a.u32(2), &parts));
  if (!memory.contains(a.u32(3), 4)) return Errno::kFault;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdRead, &entry));
  UPTIER_WASI_TRY(would_block(*entry, POLLIN));
  return report(memory, a.u32(3),
                retrying([&] { return ::readv(entry->host.get(), parts.part, parts.count); }));
}

Errno fd_write(State& state, GuestMemory memory, Args a) noexcept {
  Parts parts;
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(gather(memory, a.u32(1), a.u32(2), &parts));
  if (!memory.contains(a.u32(3), 4)) return Errno::kFault;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdWrite, &entry));
  UPTIER_WASI_TRY(would_block(*entry, POLLOUT));
  PipeSignalGuard guard(entry->signals_on_write);
  const ssize_t written =
      retrying([&] { return ::writev(entry->host.get(), parts.part, parts.count); });
  guard.wrote(written);
  return report(memory, a.u32(3), written);
}

Errno fd_pread(State& state, GuestMemory memory, Args a) noexcept {
  At at;
  UPTIER_WASI_TRY(load_at(state, memory, a, kFdRead, &at));
  return report(memory, a.u32(4), retrying([&] {
                  return ::preadv(at.entry->host.get(), at.parts.part, at.parts.count, at.offset);
                }));
}

Errno fd_pwrite(State& state, GuestMemory memory, Args a) noexcept {
  At at;
  UPTIER_WASI_TRY(load_at(state, memory, a, kFdWrite, &at));
  const AppendModeOff mode(*at.entry);
  return report(memory, a.u32(4), retrying([&] {
                  return ::pwritev(at.entry->host.get(), at.parts.part, at.parts.count, at.offset);
                }));
}

}  // namespace uptier::wasm::wasi
