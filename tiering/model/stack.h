// NativeStack: a stack that a thread runs compiled code on, its own or one that the host has named.
//
// The state that compiled code and the paths around it keep for a stack lies in the thread's context
// while the thread is on the stack, and here while the stack is suspended:
//
//   limit              below which prologues trap
//   activation         the chain of its invokes; traps unwind along it
//   exits_to_host      how many interpreters wait there for code to leave
//   a raised trap      that nobody has taken yet
//
// and for the reclaimer, which of its words frames may lie in: [top, high), and the registers that
// they had when they were suspended. A stack that was never switched to has none.
//
//   Thread: the one that it belongs to; others while that is looked at (thread.h).
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sampler/context.h"
#include "sampler/fuel.h"
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

  const void* const thread;   // the AttachedThread that it belongs to
  const uintptr_t low, high;  // both 0 when unknown, of a thread's own
  size_t place = 0;           // in ThreadStacks
  uintptr_t top = 0;          // 0: nothing is suspended on it

  // Takes over what the context has of it, or gives it back.
  void save(const sampler::ThreadContext& c) noexcept;
  void restore(sampler::ThreadContext& c) const noexcept;

  bool holds(uintptr_t address) const { return address >= low && address < high; }

  uint64_t limit = 0;
  const jit::HostExit* host_exits = nullptr;  // AttachedThread::host_exits
  int64_t fuel = sampler::kFuelWithoutEnd;    // of its innermost invoke
  tiering::InvokeFrame* invokes = nullptr;    // the innermost; see thread_stop.h
  // The registers of callers: a copy of the library's frames that suspended the stack, from below the
  // frame of HostStacks' switch to above the frame of its C function. The frames themselves are gone when
  // the reclaimer looks.
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
  // Returns whether each of its stacks can be looked at.
  bool known() const { return own_->high != 0; }

  NativeStack& add(std::unique_ptr<NativeStack> stack);
  // `stack` is one of these and not the current one.
  void remove(NativeStack& stack);
  // Leaves the current stack, whose frames lie from `top` up, for another.
  void change(NativeStack& to, uintptr_t top, sampler::ThreadContext& c) noexcept;
  // Calls `look(Words)` for the current stack from `top` up, and for all that is suspended.
  template <typename F>
  void each(uintptr_t top, F look) const {
    assert(current_->top == 0 && top <= current_->high);
    look(Words{top, current_->high});
    if (suspended_ == 0) return;
    look_suspended(*own_, look);
    for (const auto& s : others_) look_suspended(*s, look);
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

  std::unique_ptr<NativeStack> own_;
  std::vector<std::unique_ptr<NativeStack>> others_;
  NativeStack* current_ = nullptr;
  size_t suspended_ = 0;
};

}  // namespace tiering
}  // namespace uptier
