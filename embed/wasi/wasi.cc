// wasi.cc: making a guest's view of the system, and the table of its functions.
#include "embed/wasi/wasi.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "embed/wasi/state.h"
#include "embed/wasm/wall.h"

namespace uptier::wasm {
namespace {

using wasi::Args;
using wasi::Errno;
using wasi::State;

Error invalid(std::string what) { return Error{ErrorCode::kInvalidArgument, std::move(what)}; }

// All strings of a list and their NULs must be countable in 32 bits, as the guest will see them.
Status check_strings(const std::vector<std::string>& list, const char* what) {
  uint64_t total = 0;
  for (const std::string& text : list) {
    if (text.find('\0') != std::string::npos) {
      return invalid(std::string("wasi: an ") + what + " contains a NUL byte");
    }
    total += text.size() + 1;
  }
  if (total > UINT32_MAX) return invalid(std::string("wasi: too many bytes of ") + what);
  return Status();
}

Status check_config(const WasiConfig& config) {
  if (Status s = check_strings(config.args, "argument"); !s.ok()) return s;
  if (Status s = check_strings(config.env, "environment entry"); !s.ok()) return s;
  for (const std::string& entry : config.env) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      return invalid("wasi: environment entry \"" + entry + "\" is not KEY=VALUE");
    }
  }
  for (const Preopen& preopen : config.preopens) {
    if (preopen.guest_path.empty()) {
      return invalid("wasi: directory " + preopen.host_path + " has an empty guest path");
    }
  }
  return Status();
}

// Lends the host's stream to the guest, with the rights that the stream's own mode allows.
void add_stream(State& state, uint32_t fd, int host) {
  const int flags = host < 0 ? -1 : ::fcntl(host, F_GETFL);
  if (flags < 0) return;
  wasi::Rights rights = wasi::kFileRights;
  const int access = flags & O_ACCMODE;
  if (access == O_WRONLY) rights &= ~wasi::kFdRead;
  if (access == O_RDONLY) {
    rights &= ~(wasi::kFdWrite | wasi::kFdAllocate | wasi::kFdFilestatSetSize);
  }
  wasi::FdEntry entry;
  if (wasi::describe(host, rights, &entry) != 0) return;
  entry.host = wasi::OwnedFd(host);
  entry.owned = state.config.owns_stdio;
  entry.nonblocking = (flags & O_NONBLOCK) != 0;
  state.fds.place(fd, std::move(entry));
}

Status add_preopen(State& state, const Preopen& preopen) {
  wasi::OwnedFd host(wasi::retrying(
      [&] { return ::open(preopen.host_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!host.valid()) {
    return Error{ErrorCode::kIo, "wasi: cannot open directory " + preopen.host_path + ": " +
                                     std::generic_category().message(errno)};
  }
  uint32_t fd = 0;
  wasi::FdEntry entry;
  if (state.fds.reserve(&fd) != Errno::kSuccess ||
      wasi::describe(host.get(), wasi::kDirectoryRights, &entry) != 0) {
    return Error{ErrorCode::kResourceExhausted, "wasi: no descriptor for " + preopen.host_path};
  }
  entry.inheriting = wasi::kAllRights;
  entry.preopen = true;
  entry.guest_path = preopen.guest_path;
  entry.host = std::move(host);
  state.fds.place(fd, std::move(entry));
  return Status();
}

Status choose_resolver(State& state) {
  using Mode = wasi::Resolver::Mode;
  if (state.config.resolver == WasiResolver::kWalk) return Status();
  wasi::OwnedFd here(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const bool kernel = here.valid() && wasi::Resolver::kernel_can(here.get());
  if (kernel) state.resolver = wasi::Resolver(Mode::kOpenat2);
  if (kernel || state.config.resolver == WasiResolver::kAuto) return Status();
  return Error{ErrorCode::kUnsupported, "wasi: this kernel has no openat2"};
}

template <Errno (*kFunction)(State&, GuestMemory, Args) noexcept>
WasiOutcome call(Wasi& wasi, GuestMemory memory, const uint64_t* args) noexcept {
  const Errno error = kFunction(wasi.state(), memory, Args(args));
  return WasiOutcome{static_cast<uint32_t>(error), false, 0};
}

WasiOutcome proc_exit(Wasi& wasi, GuestMemory, const uint64_t* args) noexcept {
  const uint32_t code = Args(args).u32(0);
  wasi.state().exit_code = code;
  return WasiOutcome{0, true, code};
}

// Sorted by name, for the search.
constexpr WasiFunction kFunctions[] = {
    {"args_get", "ii>i", call<wasi::args_get>},
    {"args_sizes_get", "ii>i", call<wasi::args_sizes_get>},
    {"clock_res_get", "ii>i", call<wasi::clock_res_get>},
    {"clock_time_get", "iIi>i", call<wasi::clock_time_get>},
    {"environ_get", "ii>i", call<wasi::environ_get>},
    {"environ_sizes_get", "ii>i", call<wasi::environ_sizes_get>},
    {"fd_advise", "iIIi>i", call<wasi::fd_advise>},
    {"fd_allocate", "iII>i", call<wasi::fd_allocate>},
    {"fd_close", "i>i", call<wasi::fd_close>},
    {"fd_datasync", "i>i", call<wasi::fd_datasync>},
    {"fd_fdstat_get", "ii>i", call<wasi::fd_fdstat_get>},
    {"fd_fdstat_set_flags", "ii>i", call<wasi::fd_fdstat_set_flags>},
    {"fd_fdstat_set_rights", "iII>i", call<wasi::fd_fdstat_set_rights>},
    {"fd_filestat_get", "ii>i", call<wasi::fd_filestat_get>},
    {"fd_filestat_set_size", "iI>i", call<wasi::fd_filestat_set_size>},
    {"fd_filestat_set_times", "iIIi>i", call<wasi::fd_filestat_set_times>},
    {"fd_pread", "iiiIi>i", call<wasi::fd_pread>},
    {"fd_prestat_dir_name", "iii>i", call<wasi::fd_prestat_dir_name>},
    {"fd_prestat_get", "ii>i", call<wasi::fd_prestat_get>},
    {"fd_pwrite", "iiiIi>i", call<wasi::fd_pwrite>},
    {"fd_read", "iiii>i", call<wasi::fd_read>},
    {"fd_readdir", "iiiIi>i", call<wasi::fd_readdir>},
    {"fd_renumber", "ii>i", call<wasi::fd_renumber>},
    {"fd_seek", "iIii>i", call<wasi::fd_seek>},
    {"fd_sync", "i>i", call<wasi::fd_sync>},
    {"fd_tell", "ii>i", call<wasi::fd_tell>},
    {"fd_write", "iiii>i", call<wasi::fd_write>},
    {"path_create_directory", "iii>i", call<wasi::path_create_directory>},
    {"path_filestat_get", "iiiii>i", call<wasi::path_filestat_get>},
    {"path_filestat_set_times", "iiiiIIi>i", call<wasi::path_filestat_set_times>},
    {"path_link", "iiiiiii>i", call<wasi::path_link>},
    {"path_open", "iiiiiIIii>i", call<wasi::path_open>},
    {"path_readlink", "iiiiii>i", call<wasi::path_readlink>},
    {"path_remove_directory", "iii>i", call<wasi::path_remove_directory>},
    {"path_rename", "iiiiii>i", call<wasi::path_rename>},
    {"path_symlink", "iiiii>i", call<wasi::path_symlink>},
    {"path_unlink_file", "iii>i", call<wasi::path_unlink_file>},
    {"poll_oneoff", "iiii>i", call<wasi::poll_oneoff>},
    {"proc_exit", "i>", proc_exit},
    {"proc_raise", "i>i", call<wasi::proc_raise>},
    {"random_get", "ii>i", call<wasi::random_get>},
    {"sched_yield", ">i", call<wasi::sched_yield>},
    {"sock_accept", "iii>i", call<wasi::sock_unsupported>},
    {"sock_recv", "iiiiii>i", call<wasi::sock_unsupported>},
    {"sock_send", "iiiii>i", call<wasi::sock_unsupported>},
    {"sock_shutdown", "ii>i", call<wasi::sock_unsupported>},
};

constexpr bool before(const WasiFunction& a, const WasiFunction& b) {
  return std::string_view(a.name) < std::string_view(b.name);
}
static_assert(std::is_sorted(std::begin(kFunctions), std::end(kFunctions), before));

}  // namespace

Wasi::Wasi(std::unique_ptr<State> state) : state_(std::move(state)) {}
Wasi::~Wasi() = default;

Result<std::unique_ptr<Wasi>> Wasi::create(WasiConfig config) try {
  if (Status s = check_config(config); !s.ok()) return s.error();
  auto state = std::make_unique<State>();
  state->config = std::move(config);
  state->system = state->config.system ? state->config.system : &state->host_system;
  if (Status s = choose_resolver(*state); !s.ok()) return s.error();
  if (state->fds.reserve_stdio() != Errno::kSuccess) {
    return Error{ErrorCode::kResourceExhausted, "wasi: no memory for the descriptor table"};
  }
  const int streams[] = {state->config.stdin_fd, state->config.stdout_fd, state->config.stderr_fd};
  for (uint32_t fd = 0; fd < wasi::FdTable::kFirst; ++fd) { add_stream(*state, fd, streams[fd]); }
  for (const Preopen& preopen : state->config.preopens) {
    if (Status s = add_preopen(*state, preopen); !s.ok()) return s.error();
  }
  return std::unique_ptr<Wasi>(new Wasi(std::move(state)));
} catch (const std::exception&) { return out_of_memory(); }

std::optional<uint32_t> Wasi::exit_code() const { return state_->exit_code; }

WasiResolver Wasi::resolver() const {
  return state_->resolver.mode() == wasi::Resolver::Mode::kOpenat2 ? WasiResolver::kOpenat2
                                                                   : WasiResolver::kWalk;
}

std::span<const WasiFunction> wasi_functions() { return kFunctions; }

const WasiFunction* find_wasi_function(std::string_view name) {
  const auto end = std::end(kFunctions);
  const auto found = std::lower_bound(
      std::begin(kFunctions), end, name,
      [](const WasiFunction& f, std::string_view n) { return std::string_view(f.name) < n; });
  return found != end && name == found->name ? found : nullptr;
}

}  // namespace uptier::wasm
