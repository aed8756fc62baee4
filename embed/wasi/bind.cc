#include "embed/wasi/bind.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "embed/wasm/engine.h"
#include "uptier/runtime.h"
#include "uptier/tracing.h"

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

void finish_call(const WasiOutcome& outcome, uint64_t* results) {
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

// The stream "wasi": a call of a function is an ARGUMENTS pair, with its arguments as integers and the
// WASI errno, or the exit code, for a result. Set by bind_wasi; without tracing nobody listens to it.
uptier_trace_stream nobody = {};
uptier_trace_stream* trace_stream = &nobody;

WasiOutcome call_handler(const WasiFunction& f, Wasi& wasi, Instance& caller,
                         const uint64_t* args) noexcept {
  if (!may_wait(f.name)) return f.handler(wasi, memory_of(caller), args);
  BlockedScope blocked(caller.store().engine().runtime());
  return f.handler(wasi, memory_of(caller), args);
}

WasiOutcome traced_call(const WasiFunction& f, Wasi& wasi, Instance& caller,
                        const uint64_t* args) noexcept {
  constexpr size_t kMostArguments = 16;
  std::array<uptier_trace_value, kMostArguments> values = {};
  uptier_trace_arguments told = {};
  told.size = sizeof told;
  told.function = f.name;
  told.count =
      static_cast<uint32_t>(std::min(kMostArguments, std::string_view(f.signature).find('>')));
  told.arguments = values.data();
  for (uint32_t i = 0; i < told.count; ++i) {
    values[i].kind = UPTIER_TRACE_INT;
    const bool wide = f.signature[i] == 'I';
    values[i].as.integer = wide ? static_cast<int64_t>(args[i]) : static_cast<uint32_t>(args[i]);
  }
  const uint64_t instance =
      uptier_trace->begin(trace_stream, UPTIER_TRACE_ARGUMENTS, nullptr, nullptr, &told);
  const WasiOutcome outcome = call_handler(f, wasi, caller, args);
  uptier_trace_value result = {};
  result.kind = UPTIER_TRACE_INT;
  result.as.integer = outcome.exit ? outcome.exit_code : outcome.errno_;
  told.result = &result;
  uptier_trace->end(trace_stream, UPTIER_TRACE_ARGUMENTS, nullptr, nullptr, instance, &told);
  return outcome;
}

// One callback per row of the table of functions: a HostCallback gets one `env`, which must be the
// Wasi, so the row is part of the callback.
template <size_t kRow>
void call_row(void* env, Instance& caller, const uint64_t* args, uint64_t* results) noexcept {
  const WasiFunction& f = wasi_functions()[kRow];
  Wasi& wasi = *static_cast<Wasi*>(env);
  const bool traced = UPTIER_TRACE_ON(trace_stream, UPTIER_TRACE_BEGIN(UPTIER_TRACE_ARGUMENTS));
  const WasiOutcome outcome =
      traced ? traced_call(f, wasi, caller, args) : call_handler(f, wasi, caller, args);
  uint64_t unused = 0;
  bool has_result = !std::string_view(f.signature).ends_with('>');
  finish_call(outcome, has_result ? results : &unused);
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
  trace_stream = uptier_trace->stream("wasi", 1, 0);
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
