#include "embed/wasm/wasi_bind.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "embed/wasm/engine.h"
#include "uptier/runtime.h"

namespace uptier::wasm {
namespace {

Type type_of(char letter) { return letter == 'I' ? Type::kI64 : Type::kI32; }

// Reads "iIi>i".
FuncType parse_signature(std::string_view text) {
  FuncType type;
  size_t arrow = text.find('>');
  for (char c : text.substr(0, arrow)) type.params.push_back(type_of(c));
  for (char c : text.substr(arrow + 1)) type.results.push_back(type_of(c));
  return type;
}

void finish(const WasiOutcome& outcome, uint64_t* results) {
  if (outcome.exit) return Runtime::raise(TrapCode::kExit, outcome.exit_code);
  results[0] = outcome.errno_;
}

GuestMemory memory_of(Instance& caller) {
  Memory* m = caller.memory();
  return m == nullptr ? GuestMemory{} : GuestMemory{m->bytes().data(), m->bytes().size()};
}

// Calls that can last as long as somebody else likes: code that the thread does not need may be
// freed meanwhile.
bool may_wait(std::string_view name) {
  return name == "poll_oneoff" || name == "fd_read" || name == "fd_pread";
}

// One callback per row of the table of functions: a HostCallback gets one `env`, which must be the
// Wasi, so the row is part of the callback.
template <size_t kRow>
void call_row(void* env, Instance& caller, const uint64_t* args, uint64_t* results) noexcept {
  const WasiFunction& f = wasi_functions()[kRow];
  Wasi& wasi = *static_cast<Wasi*>(env);
  WasiOutcome outcome;
  if (may_wait(f.name)) {
    BlockedScope blocked(caller.store().engine().runtime());
    outcome = f.handler(wasi, memory_of(caller), args);
  } else {
    outcome = f.handler(wasi, memory_of(caller), args);
  }
  uint64_t unused = 0;
  bool has_result = !std::string_view(f.signature).ends_with('>');
  finish(outcome, has_result ? results : &unused);
}

// More rows than the interface has; bind_wasi defines as many as there are.
constexpr size_t kMaxRows = 64;

template <size_t... kRows>
constexpr auto callbacks(std::index_sequence<kRows...>) {
  return std::array<HostCallback, sizeof...(kRows)>{call_row<kRows>...};
}
constexpr auto kCallbacks = callbacks(std::make_index_sequence<kMaxRows>());

}  // namespace

void bind_wasi(Linker& linker, Wasi& wasi) {
  auto functions = wasi_functions();
  for (size_t row = 0; row < functions.size() && row < kMaxRows; ++row) {
    const WasiFunction& f = functions[row];
    linker.define(
        {std::string(kWasiModule), f.name, parse_signature(f.signature), kCallbacks[row], &wasi});
  }
}

CommandResult run_start(Instance& instance) {
  CommandResult r;
  Result<CallResult> call = instance.invoke("_start");
  if (!call) {
    r.trap.code = TrapCode::kHost;
    r.trap.message = call.error().message;
  } else if (call->ok()) {
    r.exit_code = 0;
  } else if (call->trap.code == TrapCode::kExit) {
    r.exit_code = static_cast<uint32_t>(call->trap.detail);
  } else {
    r.trap = call->trap;
  }
  return r;
}

}  // namespace uptier::wasm
