// stat.cc: what a file is, how large, and from when.
//
// A path is opened with O_PATH first and then asked through its descriptor, so the file that was
// resolved beneath the directory is the file that answers.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "embed/wasi/state.h"

namespace uptier::wasm::wasi {
namespace {

using namespace layout;  // NOLINT: field offsets only

uint64_t nanoseconds(const timespec& t) {
  // A time before 1970 has no representation; the epoch is the nearest that has.
  if (t.tv_sec < 0) return 0;
  return static_cast<uint64_t>(t.tv_sec) * kNsPerSecond + static_cast<uint64_t>(t.tv_nsec);
}

// `type`: of an open descriptor, which may be known better than its mode tells.
void store_filestat(GuestMemory memory, uint32_t address, const struct stat& st, FileType type) {
  uint8_t out[kFilestat] = {};
  put64(out + kFilestatDev, st.st_dev);
  put64(out + kFilestatIno, st.st_ino);
  out[kFilestatType] = static_cast<uint8_t>(type);
  put64(out + kFilestatNlink, st.st_nlink);
  put64(out + kFilestatSize, static_cast<uint64_t>(st.st_size));
  put64(out + kFilestatAtim, nanoseconds(st.st_atim));
  put64(out + kFilestatMtim, nanoseconds(st.st_mtim));
  put64(out + kFilestatCtim, nanoseconds(st.st_ctim));
  memory.write(address, out, sizeof out);
}

timespec time_to_set(uint64_t ns, bool set, bool now) {
  timespec t = {};
  if (set) {
    t.tv_sec = static_cast<time_t>(ns / kNsPerSecond);
    t.tv_nsec = static_cast<long>(ns % kNsPerSecond);
  } else {
    t.tv_nsec = now ? UTIME_NOW : UTIME_OMIT;
  }
  return t;
}

struct Times {
  timespec at[2];  // access, modification
};

Errno load_times(uint64_t atim, uint64_t mtim, uint32_t flags, Times* out) {
  if (flags & ~uint32_t{kAllSetTimeFlags}) return Errno::kInval;
  if ((flags & kSetAtim) && (flags & kSetAtimNow)) return Errno::kInval;
  if ((flags & kSetMtim) && (flags & kSetMtimNow)) return Errno::kInval;
  out->at[0] = time_to_set(atim, flags & kSetAtim, flags & kSetAtimNow);
  out->at[1] = time_to_set(mtim, flags & kSetMtim, flags & kSetMtimNow);
  return Errno::kSuccess;
}

// Sets the times of a file that is open with O_PATH.
Errno set_times(int file, const Times& times) {
  if (::utimensat(file, "", times.at, AT_EMPTY_PATH) == 0) return Errno::kSuccess;
  // Kernels before 5.8 do not take AT_EMPTY_PATH here; the descriptor has a name in /proc, which
  // leads to this very file.
  if (errno != EINVAL) return from_host(errno);
  char name[32];
  std::snprintf(name, sizeof name, "/proc/self/fd/%d", file);
  return status_of(::utimensat(AT_FDCWD, name, times.at, 0));
}

// (fd, lookup flags, path, its size, ...): opens the file itself, or the link when not followed.
Errno open_named(State& state, GuestMemory memory, Args a, Rights need, OwnedFd* out) {
  GuestPath path;
  UPTIER_WASI_TRY(load_path(memory, a.u32(2), a.u32(3), &path));
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), need, &entry));
  if (a.u32(1) & ~kLookupFollow) return Errno::kInval;
  return state.resolver.open(entry->host.get(), path, O_PATH, a.u32(1) & kLookupFollow, out);
}

}  // namespace

// (fd, pointer to the result)
Errno fd_filestat_get(State& state, GuestMemory memory, Args a) noexcept {
  if (!memory.contains(a.u32(1), kFilestat)) return Errno::kFault;
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdFilestatGet, &entry));
  struct stat st;
  UPTIER_WASI_TRY(status_of(::fstat(entry->host.get(), &st)));
  store_filestat(memory, a.u32(1), st, entry->type);
  return Errno::kSuccess;
}

// (fd, size)
Errno fd_filestat_set_size(State& state, GuestMemory, Args a) noexcept {
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdFilestatSetSize, &entry));
  if (a.u64(1) > INT64_MAX) return Errno::kInval;
  return status_of(
      retrying([&] { return ::ftruncate(entry->host.get(), static_cast<off_t>(a.u64(1))); }));
}

// (fd, access time, modification time, flags)
Errno fd_filestat_set_times(State& state, GuestMemory, Args a) noexcept {
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdFilestatSetTimes, &entry));
  Times times;
  UPTIER_WASI_TRY(load_times(a.u64(1), a.u64(2), a.u32(3), &times));
  return status_of(::futimens(entry->host.get(), times.at));
}

// (fd, lookup flags, path, its size, pointer to the result)
Errno path_filestat_get(State& state, GuestMemory memory, Args a) noexcept {
  if (!memory.contains(a.u32(4), kFilestat)) return Errno::kFault;
  OwnedFd file;
  UPTIER_WASI_TRY(open_named(state, memory, a, kPathFilestatGet, &file));
  struct stat st;
  UPTIER_WASI_TRY(status_of(::fstat(file.get(), &st)));
  store_filestat(memory, a.u32(4), st, type_of_mode(st.st_mode));
  return Errno::kSuccess;
}

// (fd, lookup flags, path, its size, access time, modification time, flags)
Errno path_filestat_set_times(State& state, GuestMemory memory, Args a) noexcept {
  OwnedFd file;
  UPTIER_WASI_TRY(open_named(state, memory, a, kPathFilestatSetTimes, &file));
  Times times;
  UPTIER_WASI_TRY(load_times(a.u64(4), a.u64(5), a.u32(6), &times));
  return set_times(file.get(), times);
}

}  // namespace uptier::wasm::wasi
