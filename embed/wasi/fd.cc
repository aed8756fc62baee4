// fd.cc: what is done to a descriptor as a whole.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "embed/wasi/state.h"

namespace uptier::wasm::wasi {
namespace {

using namespace layout;  // NOLINT: field offsets only

uint16_t guest_status_flags(int flags) {
  uint16_t out = 0;
  if (flags & O_APPEND) out |= kFdAppend;
  if (flags & O_NONBLOCK) out |= kFdNonblock;
  // The host's O_SYNC contains the bit of O_DSYNC, and is O_RSYNC as well.
  if ((flags & O_SYNC) == O_SYNC) {
    out |= kFdSyncFlag;
  } else if (flags & O_DSYNC) {
    out |= kFdDsync;
  }
  return out;
}

Errno current_flags(const FdEntry& entry, int* flags) {
  *flags = ::fcntl(entry.host.get(), F_GETFL);
  if (*flags < 0) return from_host(errno);
  if (!entry.owned) *flags = (*flags & ~O_NONBLOCK) | (entry.nonblocking ? O_NONBLOCK : 0);
  return Errno::kSuccess;
}

// Two file offsets as the host wants them: EINVAL when one has no signed form.
bool as_offsets(uint64_t a, uint64_t b) { return a <= INT64_MAX && b <= INT64_MAX; }

Errno seek(const FdEntry& entry, int64_t offset, int whence, GuestMemory memory, uint32_t result) {
  const off_t at = ::lseek(entry.host.get(), offset, whence);
  if (at < 0) return from_host(errno);
  memory.store64(result, static_cast<uint64_t>(at));
  return Errno::kSuccess;
}

}  // namespace

// (fd, offset, length, advice)
Errno fd_advise(State& state, GuestMemory, Args a) noexcept {
  constexpr int kAdvice[] = {POSIX_FADV_NORMAL,   POSIX_FADV_SEQUENTIAL, POSIX_FADV_RANDOM,
                             POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED,   POSIX_FADV_NOREUSE};
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdAdvise, &entry));
  const uint32_t advice = a.u32(3);
  if (advice >= std::size(kAdvice) || !as_offsets(a.u64(1), a.u64(2))) return Errno::kInval;
  return from_host(::posix_fadvise(entry->host.get(), static_cast<off_t>(a.u64(1)),
                                   static_cast<off_t>(a.u64(2)), kAdvice[advice]));
}

// (fd, offset, length)
Errno fd_allocate(State& state, GuestMemory, Args a) noexcept {
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdAllocate, &entry));
  if (!as_offsets(a.u64(1), a.u64(2)) || a.u64(2) == 0) return Errno::kInval;
  int error;
  do {
    error = ::posix_fallocate(entry->host.get(), static_cast<off_t>(a.u64(1)),
                              static_cast<off_t>(a.u64(2)));
  } while (tries_again(error));
  return from_host(error);
}

Errno fd_close(State& state, GuestMemory, Args a) noexcept { return state.fds.close(a.u32(0)); }

Errno fd_datasync(State& state, GuestMemory, Args a) noexcept {
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdDatasync, &entry));
  return status_of(retrying([&] { return ::fdatasync(entry->host.get()); }));
}

Errno fd_sync(State& state, GuestMemory, Args a) noexcept {
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdSync, &entry));
  return status_of(retrying([&] { return ::fsync(entry->host.get()); }));
}

// (fd, pointer to the result)
Errno fd_fdstat_get(State& state, GuestMemory memory, Args a) noexcept {
  if (!memory.contains(a.u32(1), kFdstat)) return Errno::kFault;
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), 0, &entry));
  int flags = 0;
  UPTIER_WASI_TRY(current_flags(*entry, &flags));
  uint8_t out[kFdstat] = {};
  out[kFdstatType] = static_cast<uint8_t>(entry->type);
  put16(out + kFdstatFlags, guest_status_flags(flags));
  put64(out + kFdstatBase, entry->base);
  put64(out + kFdstatInheriting, entry->inheriting);
  memory.write(a.u32(1), out, sizeof out);
  return Errno::kSuccess;
}

// (fd, flags). The host cannot change the synchronisation of an open file, so a request to is
// ENOTSUP rather than a silence that loses data; the same for append mode on a lent stream.
Errno fd_fdstat_set_flags(State& state, GuestMemory, Args a) noexcept {
  const uint32_t wanted = a.u32(1);
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdFdstatSetFlags, &entry));
  if (wanted & ~uint32_t{kAllFdFlags}) return Errno::kInval;
  int flags = 0;
  UPTIER_WASI_TRY(current_flags(*entry, &flags));
  const int host = host_status_flags(static_cast<uint16_t>(wanted));
  if ((host ^ flags) & O_SYNC) return Errno::kNotsup;
  if (!entry->owned) {
    if ((host ^ flags) & O_APPEND) return Errno::kNotsup;
    entry->nonblocking = (wanted & kFdNonblock) != 0;
    return Errno::kSuccess;
  }
  constexpr int kChangeable = O_APPEND | O_NONBLOCK;
  return status_of(
      ::fcntl(entry->host.get(), F_SETFL, (flags & ~kChangeable) | (host & kChangeable)));
}

// (fd, base, inheriting): rights can only be given up.
Errno fd_fdstat_set_rights(State& state, GuestMemory, Args a) noexcept {
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), 0, &entry));
  if ((a.u64(1) & ~entry->base) || (a.u64(2) & ~entry->inheriting)) return Errno::kNotcapable;
  entry->base = a.u64(1);
  entry->inheriting = a.u64(2);
  return Errno::kSuccess;
}

// (from, to)
Errno fd_renumber(State& state, GuestMemory, Args a) noexcept {
  return state.fds.renumber(a.u32(0), a.u32(1));
}

// (fd, offset, whence, pointer to the new position)
Errno fd_seek(State& state, GuestMemory memory, Args a) noexcept {
  constexpr int kWhence[] = {SEEK_SET, SEEK_CUR, SEEK_END};
  if (!memory.contains(a.u32(3), 8)) return Errno::kFault;
  const int64_t offset = static_cast<int64_t>(a.u64(1));
  const uint32_t whence = a.u32(2);
  if (whence >= std::size(kWhence)) return Errno::kInval;
  const bool only_asks = offset == 0 && kWhence[whence] == SEEK_CUR;
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), only_asks ? kFdTell : kFdSeek, &entry));
  return seek(*entry, offset, kWhence[whence], memory, a.u32(3));
}

// (fd, pointer to the position)
Errno fd_tell(State& state, GuestMemory memory, Args a) noexcept {
  if (!memory.contains(a.u32(1), 8)) return Errno::kFault;
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdTell, &entry));
  return seek(*entry, 0, SEEK_CUR, memory, a.u32(1));
}

}  // namespace uptier::wasm::wasi
