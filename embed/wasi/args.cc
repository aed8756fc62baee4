// args.cc: arguments, environment, randomness, and what this system leaves out.
#include "embed/wasi/state.h"

#include <sched.h>

namespace uptier::wasm::wasi {
namespace {

using Strings = std::vector<std::string>;

uint32_t bytes_of(const Strings& strings) {
  uint64_t total = 0;  // Wasi::create has checked that it fits 32 bits
  for (const std::string& text : strings) total += text.size() + 1;
  return static_cast<uint32_t>(total);
}

// (pointer to a table of pointers, pointer to the bytes they will point to)
Errno get_strings(const Strings& strings, GuestMemory memory, Args a) {
  const uint32_t table = a.u32(0);
  uint32_t at = a.u32(1);
  if (!memory.contains(table, uint64_t{strings.size()} * 4)) return Errno::kFault;
  if (!memory.contains(at, bytes_of(strings))) return Errno::kFault;
  uint32_t slot = table;
  for (const std::string& text : strings) {
    memory.store32(slot, at);
    memory.write(at, text.c_str(), text.size() + 1);
    slot += 4;
    at += static_cast<uint32_t>(text.size()) + 1;
  }
  return Errno::kSuccess;
}

// (pointer to the count, pointer to the number of bytes)
Errno get_sizes(const Strings& strings, GuestMemory memory, Args a) {
  if (!memory.contains(a.u32(0), 4) || !memory.contains(a.u32(1), 4)) return Errno::kFault;
  memory.store32(a.u32(0), static_cast<uint32_t>(strings.size()));
  memory.store32(a.u32(1), bytes_of(strings));
  return Errno::kSuccess;
}

}  // namespace

Errno args_get(State& state, GuestMemory memory, Args a) noexcept {
  return get_strings(state.config.args, memory, a);
}

Errno args_sizes_get(State& state, GuestMemory memory, Args a) noexcept {
  return get_sizes(state.config.args, memory, a);
}

Errno environ_get(State& state, GuestMemory memory, Args a) noexcept {
  return get_strings(state.config.env, memory, a);
}

Errno environ_sizes_get(State& state, GuestMemory memory, Args a) noexcept {
  return get_sizes(state.config.env, memory, a);
}

Errno random_get(State& state, GuestMemory memory, Args a) noexcept {
  const uint32_t size = a.u32(1);
  uint8_t* out = memory.at(a.u32(0), size);
  if (out == nullptr)
    return size == 0 && memory.contains(a.u32(0), 0) ? Errno::kSuccess : Errno::kFault;
  return from_host(state.system->random(std::span<uint8_t>(out, size)));
}

Errno sched_yield(State&, GuestMemory, Args) noexcept {
  ::sched_yield();
  return Errno::kSuccess;
}

Errno proc_raise(State&, GuestMemory, Args) noexcept { return Errno::kNosys; }

// No descriptor of a guest is a socket it may use as one: none is ever handed out.
Errno sock_unsupported(State& state, GuestMemory, Args a) noexcept {
  return state.fds.find(a.u32(0)) == nullptr ? Errno::kBadf : Errno::kNotsock;
}

}  // namespace uptier::wasm::wasi
