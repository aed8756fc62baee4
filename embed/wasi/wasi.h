// wasi.h: WASI preview 1, the system interface of guests built with wasi-libc.
//
// The law: a guest reaches its arguments, its environment, clocks, randomness, the three standard
// streams, and files beneath the preopened directories. Nothing else. A path is resolved
// beneath a directory descriptor by the kernel (or by a walk that never follows a link blindly),
// so neither "..", nor an absolute path, nor a symbolic link, nor a race can lead outside.
//
// A handler checks every guest range before it acts: a bad pointer gives EFAULT, with the guest's
// memory and the outside world unchanged. Handlers do not throw, print, or allocate with a
// throwing allocator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embed/wasi/memory.h"
#include "uptier/result.h"

struct pollfd;

namespace uptier::wasm {

namespace wasi {
struct State;
}

// The import module that find_wasi_function serves.
inline constexpr std::string_view kWasiModule = "wasi_snapshot_preview1";

// The guest's clocks and random numbers. Replace it to make runs reproducible; the default asks the
// operating system. Thread: called on the guest's thread only. Functions return 0 or a host errno.
// (Nothing here is defined out of line, so that a program with RTTI can derive from it although
// the library has none.)
class WasiSystem {
 public:
  virtual ~WasiSystem() = default;

  // `clock` is a WASI clock id: 0 real time, 1 monotonic, 2 process CPU, 3 thread CPU; other ids
  // give EINVAL. Nanoseconds.
  virtual int clock_resolution(uint32_t clock, uint64_t* ns) noexcept = 0;
  virtual int clock_time(uint32_t clock, uint64_t* ns) noexcept = 0;

  // Fills `out` with unpredictable bytes.
  virtual int random(std::span<uint8_t> out) noexcept = 0;

  // Waits like poll(2) until a descriptor is ready or `timeout_ns` has passed; a negative timeout
  // waits for ever. Returns 0 in all of these cases; EINTR is an early return.
  virtual int wait(std::span<pollfd> descriptors, int64_t timeout_ns) noexcept = 0;
};

// A directory of the host that the guest sees under a name.
struct Preopen {
  std::string host_path;   // opened once, when the Wasi is created
  std::string guest_path;  // what fd_prestat_dir_name reports; not interpreted
};

// The method that keeps paths beneath a directory.
enum class WasiResolver : uint8_t {
  kAuto,     // the kernel's openat2 where it exists, else the walk
  kOpenat2,  // openat2 only; creating fails where the kernel lacks it
  kWalk,     // component by component, each opened without following links
};

struct WasiConfig {
  std::vector<std::string> args;  // args[0] is the program's name
  std::vector<std::string> env;   // "KEY=VALUE"
  std::vector<Preopen> preopens;  // guest descriptors 3, 4, ... in this order
  int stdin_fd = 0;               // a closed host descriptor leaves the guest's slot closed
  int stdout_fd = 1;
  int stderr_fd = 2;
  // If true, the Wasi owns the three descriptors, which must be distinct: a guest's fd_close, or the end
  // of the Wasi, closes them.
  bool owns_stdio = false;
  WasiSystem* system = nullptr;  // borrowed, outlives the Wasi; null: the operating system
  WasiResolver resolver = WasiResolver::kAuto;
};

// The result of a handler. `errno_` is a WASI errno (0: success). When `exit` is set the guest has
// asked to end with `exit_code`, and must not be resumed.
struct WasiOutcome {
  uint32_t errno_ = 0;
  bool exit = false;
  uint32_t exit_code = 0;
};

// One guest's view of the system: its descriptor table and its configuration.
//
// Thread: one call at a time. Owns the descriptors it opened, all close-on-exec.
class Wasi {
 public:
  // Opens the preopened directories. Errors: kInvalidArgument for a string that cannot be passed
  // (embedded NUL, environment entry without a key and '=', empty guest path), kIo for a directory
  // that cannot be opened, kUnsupported when the wanted resolver is missing.
  static Result<std::unique_ptr<Wasi>> create(WasiConfig config);

  ~Wasi();
  Wasi(const Wasi&) = delete;
  Wasi& operator=(const Wasi&) = delete;

  // Returns what proc_exit was given, once it has been called.
  std::optional<uint32_t> exit_code() const;

  // Returns which resolver is in use, never kAuto.
  WasiResolver resolver() const;

  wasi::State& state() { return *state_; }  // for the handlers

 private:
  explicit Wasi(std::unique_ptr<wasi::State> state);
  std::unique_ptr<wasi::State> state_;
};

// A host function. `args` holds one word per parameter; of an i32 the low half counts. Needs less
// than 32 KiB of host stack in an optimized build (27 KiB measured, a rename through links by the
// walk).
using WasiHandler = WasiOutcome (*)(Wasi& wasi, GuestMemory memory, const uint64_t* args) noexcept;

// `signature` lists parameters, then '>', then results, with i = i32 and I = i64: "iIi>i".
struct WasiFunction {
  const char* name;
  const char* signature;
  WasiHandler handler;
};

// Returns all functions of kWasiModule, sorted by name.
std::span<const WasiFunction> wasi_functions();

// Returns the function of that name in kWasiModule, or null. Logarithmic.
const WasiFunction* find_wasi_function(std::string_view name);

// Returns the name of a WASI errno ("ENOENT"), or "E?" for a number that is none.
const char* wasi_errno_name(uint32_t wasi_errno);

}  // namespace uptier::wasm
