// state.h: what the handlers share, and how a handler is written.
//
// A handler is a function (State&, GuestMemory, Args) -> Errno. Order within one: check every
// guest range, look up descriptors with the rights needed, act, store the results. So a bad
// pointer is found before the world has changed.
#pragma once

#include <cstdint>
#include <optional>

#include "embed/wasi/abi.h"
#include "embed/wasi/fds.h"
#include "embed/wasi/resolve.h"
#include "embed/wasi/wasi.h"
#include "uptier/interrupted.h"

namespace uptier::wasm::wasi {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

// The operating system's clocks, randomness and poll (clock.cc).
class HostSystem final : public WasiSystem {
 public:
  int clock_resolution(uint32_t clock, uint64_t* ns) noexcept override;
  int clock_time(uint32_t clock, uint64_t* ns) noexcept override;
  int random(std::span<uint8_t> out) noexcept override;
  int wait(std::span<pollfd> descriptors, int64_t timeout_ns) noexcept override;
};

struct State {
  WasiConfig config;
  HostSystem host_system;
  WasiSystem* system = nullptr;
  FdTable fds;
  Resolver resolver{Resolver::Mode::kWalk};
  std::optional<uint32_t> exit_code;
};

// The arguments of one call. An i32 is the low half of its word, whatever the high half holds.
class Args {
 public:
  explicit Args(const uint64_t* words) : words_(words) {}
  uint32_t u32(int i) const { return static_cast<uint32_t>(words_[i]); }
  uint64_t u64(int i) const { return words_[i]; }

 private:
  const uint64_t* words_;
};

// Returns whether a call that a signal has cut short is to be made again: not where the guest is to end
// (Runtime::interrupt), which it does when the handler returns, whatever that says.
inline bool tries_again(int error) { return error == EINTR && !interrupted(); }

// Runs `call` until it is not interrupted by a signal. Returns its result.
template <typename Call>
auto retrying(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || !tries_again(errno)) return result;
  }
}

// Translates the result of a system call that reports by errno.
inline Errno status_of(long result) { return result < 0 ? from_host(errno) : Errno::kSuccess; }

// Stops a handler at the first thing that is wrong.
#define UPTIER_WASI_TRY(expression)                                                           \
  do {                                                                                        \
    if (const Errno wasi_try_ = (expression); wasi_try_ != Errno::kSuccess) return wasi_try_; \
  } while (false)

// args.cc
Errno args_get(State&, GuestMemory, Args) noexcept;
Errno args_sizes_get(State&, GuestMemory, Args) noexcept;
Errno environ_get(State&, GuestMemory, Args) noexcept;
Errno environ_sizes_get(State&, GuestMemory, Args) noexcept;
Errno random_get(State&, GuestMemory, Args) noexcept;
Errno sched_yield(State&, GuestMemory, Args) noexcept;
Errno proc_raise(State&, GuestMemory, Args) noexcept;
Errno sock_unsupported(State&, GuestMemory, Args) noexcept;

// clock.cc
Errno clock_res_get(State&, GuestMemory, Args) noexcept;
Errno clock_time_get(State&, GuestMemory, Args) noexcept;

// poll.cc
Errno poll_oneoff(State&, GuestMemory, Args) noexcept;

// io.cc
Errno fd_read(State&, GuestMemory, Args) noexcept;
Errno fd_write(State&, GuestMemory, Args) noexcept;
Errno fd_pread(State&, GuestMemory, Args) noexcept;
Errno fd_pwrite(State&, GuestMemory, Args) noexcept;

// fd.cc
Errno fd_advise(State&, GuestMemory, Args) noexcept;
Errno fd_allocate(State&, GuestMemory, Args) noexcept;
Errno fd_close(State&, GuestMemory, Args) noexcept;
Errno fd_datasync(State&, GuestMemory, Args) noexcept;
Errno fd_fdstat_get(State&, GuestMemory, Args) noexcept;
Errno fd_fdstat_set_flags(State&, GuestMemory, Args) noexcept;
Errno fd_fdstat_set_rights(State&, GuestMemory, Args) noexcept;
Errno fd_renumber(State&, GuestMemory, Args) noexcept;
Errno fd_seek(State&, GuestMemory, Args) noexcept;
Errno fd_sync(State&, GuestMemory, Args) noexcept;
Errno fd_tell(State&, GuestMemory, Args) noexcept;

// stat.cc
Errno fd_filestat_get(State&, GuestMemory, Args) noexcept;
Errno fd_filestat_set_size(State&, GuestMemory, Args) noexcept;
Errno fd_filestat_set_times(State&, GuestMemory, Args) noexcept;
Errno path_filestat_get(State&, GuestMemory, Args) noexcept;
Errno path_filestat_set_times(State&, GuestMemory, Args) noexcept;

// dir.cc
Errno fd_prestat_get(State&, GuestMemory, Args) noexcept;
Errno fd_prestat_dir_name(State&, GuestMemory, Args) noexcept;
Errno fd_readdir(State&, GuestMemory, Args) noexcept;

// open.cc
Errno path_open(State&, GuestMemory, Args) noexcept;

// path.cc
Errno path_create_directory(State&, GuestMemory, Args) noexcept;
Errno path_link(State&, GuestMemory, Args) noexcept;
Errno path_readlink(State&, GuestMemory, Args) noexcept;
Errno path_remove_directory(State&, GuestMemory, Args) noexcept;
Errno path_rename(State&, GuestMemory, Args) noexcept;
Errno path_symlink(State&, GuestMemory, Args) noexcept;
Errno path_unlink_file(State&, GuestMemory, Args) noexcept;

// The host's open(2) status flags for a guest's fdflags (open.cc).
int host_status_flags(uint16_t fdflags);

}  // namespace uptier::wasm::wasi
