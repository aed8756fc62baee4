// bind.h: gives WASI to modules, and runs commands.
#pragma once

#include <cstdint>
#include <optional>

#include "embed/wasi/wasi.h"
#include "embed/wasm/instance.h"
#include "embed/wasm/linker.h"

namespace uptier::wasm {

// Defines all functions of kWasiModule. A guest's exit ends its call with TrapCode::kExit. `wasi`
// is borrowed and must outlive the stores that link it; one guest at a time may use it.
void bind_wasi(Linker& linker, Wasi& wasi);

// The end of a command: an exit code, or a trap.
struct CommandResult {
  std::optional<uint32_t> exit_code;
  TrapReport trap;  // when there is no exit code
};

// Calls "_start". Returning from it is exit code 0. A module that does not export it, or not as a
// function without parameters, gives a trap of code kHost whose message says so.
CommandResult run_start(Instance& instance);

}  // namespace uptier::wasm
