// NativeStack: a stack that a thread runs compiled code on: its own, or one created by the host.
//
// The state that compiled code and its slow paths keep for a stack is in the thread's context while
// the thread is on the stack, and here while the stack is suspended:
//
//   limit              prologues trap below it
//   activation         the chain of its invokes; traps unwind along it
//   exits_to_host      number of interpreters that wait there for exited code
//   a raised trap      that is still pending
//
// and for the reclaimer, the words that may contain frames: [top, high), and the registers at the
// time of suspension. A stack that was never switched to has none.
//
//   Thread: the owner; others while they look at the owner (thread.h).
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sampler/context.h"
#include "sampler/fuel.h"
#include "tiering/model/method_pin.h"
#include "uptier/runtime.h"

namespace uptier::jit {
struct HostExit;
}

namespace uptier {

namespace tiering {
struct InvokeFrame;
}

class NativeStack {
 public:
  NativeStack(const void* thread, uintptr_t low, uintptr_t high) noexcept
      : thread(thread), low(low), high(high) {}

  const void* const thread;   // the AttachedThread that owns it
  const uintptr_t low, high;  // both 0 if unknown, for a thread's own stack
  size_t place = 0;           // in ThreadStacks
  uintptr_t top = 0;          // 0: nothing is suspended on it

  // Saves the stack's state from the context, or restores it.
  void save(const sampler::ThreadContext& c) noexcept;
  void restore(sampler::ThreadContext& c) const noexcept;

  bool holds(uintptr_t address) const { return address >= low && address < high; }

  uint64_t limit = 0;
  const jit::HostExit* host_exits = nullptr;  // AttachedThread::host_exits
  int64_t fuel = sampler::kFuelWithoutEnd;    // of its innermost invoke
  tiering::InvokeFrame* invokes = nullptr;    // the innermost; see thread_stop.h
  tiering::MethodPin::List pins;              // also while the thread is on the stack
  // The registers of callers: a copy of the library's frames that suspended the stack, from below
  // the frame of HostStacks' switch to above the frame of its C function. The frames themselves no
  // longer exist when the reclaimer looks.
  static constexpr size_t kWordsBelow = 16, kWordsAbove = 48;
  std::array<uintptr_t, kWordsBelow + kWordsAbove> registers = {};

 private:
  sampler::Activation* activation_ = nullptr;
  uint32_t exits_to_host_ = 0;
  uint32_t pending_trap_ = 0;
  uint32_t trap_location_ = 0;
  uint32_t trap_method_ = 0;
  uint64_t trap_detail_ = 0;
  uint64_t trap_pc_ = 0;
  uint64_t trap_return_ = 0;
};

namespace tiering {

// The stacks of one thread.
class ThreadStacks {
 public:
  // A range of words that frames of a suspended stack may have written, lowest address first.
  struct Words {
    uintptr_t from, to;
  };

  void set_own(const void* thread, uintptr_t low, uintptr_t high);
  NativeStack& own() const { return *own_; }
  NativeStack& current() const { return *current_; }
  bool any_suspended() const { return suspended_ != 0; }
  // Says whether each of its stacks can be scanned.
  bool known() const { return own_->high != 0; }

  NativeStack& add(std::unique_ptr<NativeStack> stack);
  // `stack` is one of these and not the current one.
  void remove(NativeStack& stack);
  // Leaves the current stack, with frames from `top` up, for another.
  void change(NativeStack& to, uintptr_t top, sampler::ThreadContext& c) noexcept;
  // Calls `look(Words)` for the current stack from `top` up, and for all suspended stacks.
  template <typename F>
  void each(uintptr_t top, F look) const {
    assert(current_->top == 0 && top <= current_->high);
    look(Words{top, current_->high});
    if (suspended_ == 0) return;
    look_suspended(*own_, look);
    for (const auto& s : others_) look_suspended(*s, look);
  }
  // Calls `look(const Method*)` for the method of each pin.
  template <typename F>
  void each_pinned(F look) const {
    look_pinned(*own_, look);
    for (const auto& s : others_) look_pinned(*s, look);
  }

 private:
  template <typename F>
  static void look_suspended(const NativeStack& s, F look) {
    if (s.top == 0) return;
    assert(s.top <= s.high);
    look(Words{s.top, s.high});
    auto from = reinterpret_cast<uintptr_t>(s.registers.data());
    look(Words{from, from + sizeof s.registers});
  }

  template <typename F>
  static void look_pinned(const NativeStack& s, F look) {
    for (const MethodPin* p = s.pins.innermost; p != nullptr; p = p->outer()) look(p->method());
  }

  std::unique_ptr<NativeStack> own_;
  std::vector<std::unique_ptr<NativeStack>> others_;
  NativeStack* current_ = nullptr;
  size_t suspended_ = 0;
};

}  // namespace tiering
}  // namespace uptier
