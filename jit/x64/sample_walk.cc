#include "jit/code/sample_walk.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "jit/code/code.h"
#include "jit/code/code_readers.h"
#include "jit/code/frame_kind.h"
#include "jit/code/routines.h"
#include "jit/code/stubs.h"

namespace uptier::jit {
namespace {

using sampler::SampleGap;
using sampler::SampleLeaf;

// NOLINTBEGIN(performance-no-int-to-ptr): registers and words of the stack hold addresses

// Host frames have words that AddressSanitizer lets nobody else read.
__attribute__((no_sanitize("address", "thread"))) uint64_t word_at(uint64_t address) {
  return *reinterpret_cast<const uint64_t*>(address);
}

const void* address(uint64_t pc) { return reinterpret_cast<const void*>(pc); }

// Returns the `kCount` bytes before `pc`, which follows an instruction of the code. Those before its
// part (a cold part may begin with a call) are 0, since nothing may be readable there.
template <uint32_t kCount>
std::array<uint8_t, kCount> bytes_before(const Code& code, uint64_t pc) {
  const uint32_t last = code.offset_of(address(pc - 1));
  const uint32_t part = last < code.hot_size() ? 0 : code.hot_size();
  const uint32_t there = std::min(kCount, last + 1 - part);
  std::array<uint8_t, kCount> bytes = {};
  std::memcpy(&bytes[kCount - there], reinterpret_cast<const uint8_t*>(pc - there), there);
  return bytes;
}

// call rel32; call [rip + x]; call r11; call rax; call [r11]
bool follows_call(const Code& code, uint64_t pc) {
  const auto b = bytes_before<6>(code, pc);
  if (b[1] == 0xe8 || (b[0] == 0xff && b[1] == 0x15)) return true;
  if (b[4] == 0xff && (b[5] & 0xf8) == 0xd0) return true;
  return b[3] == 0x41 && b[4] == 0xff && b[5] == 0x13;
}

// Host functions out of reach of rel32 are called by `mov r11, imm64; call r11`.
bool called_host(const CodeSpace& space, const Code& code, uint64_t pc) {
  const auto b = bytes_before<13>(code, pc);
  if (b[0] != 0x49 || b[1] != 0xbb || b[10] != 0x41 || b[11] != 0xff || b[12] != 0xd3) return false;
  uint64_t target = 0;
  for (int i = 7; i >= 0; --i) target = target << 8 | b[2 + i];
  return !space.contains(address(target));
}

class SampleWalker {
 public:
  SampleWalker(const SampleWalk& walk, sampler::StackRecord& out)
      : walk_(walk), out_(out), activation_(walk.innermost) {
    skip_unentered();
  }

  void run(uint64_t pc, uint64_t rsp, uint64_t rbp) {
    bool in_space = walk_.space.contains(address(pc));
    out_.leaf = in_space ? SampleLeaf::kRuntime : SampleLeaf::kHost;
    if (!on_stack(rsp)) return gap(SampleGap::kForeignStack);
    while (activation_ != nullptr && rsp >= invoke_rbp() && on_stack(invoke_rbp())) leave_invoke();
    if (activation_ != nullptr && !on_stack(invoke_rbp())) return gap(SampleGap::kForeignStack);
    if (activation_ == nullptr && !in_space) {
      out_.leaf = SampleLeaf::kOutside;
      return;
    }
    if (const Code* code = in_space ? walk_.space.owner_of(address(pc)) : nullptr) {
      out_.leaf = SampleLeaf::kBody;
      return begin_in_body(*code, pc, rsp, rbp);
    }
    if (in_space && walk_.stubs.method_of(address(pc)).valid()) {
      out_.leaf = SampleLeaf::kStub;
      out_.push(pc, 0);
      return go_on(rsp, rbp);
    }
    from_host(rsp);
  }

 private:
  bool on_stack(uint64_t at) const {
    return at >= walk_.stack_low && at < walk_.stack_high && at % 8 == 0;
  }
  uint64_t invoke_rbp() const { return activation_->stack_pointer + Routines::kInvokeFrame; }
  // Up to where frames of the innermost invoke may lie.
  uint64_t end() const { return activation_ != nullptr ? invoke_rbp() : walk_.stack_high; }

  void gap(SampleGap why) { out_.gap = why; }
  void leave_invoke() {
    activation_ = activation_->outer;
    skip_unentered();
  }
  // Skips activations whose invoke routine has not stored its stack pointer yet.
  void skip_unentered() {
    while (activation_ != nullptr && activation_->stack_pointer == 0) {
      activation_ = activation_->outer;
    }
  }

  void begin_in_body(const Code& code, uint64_t pc, uint64_t rsp, uint64_t rbp) {
    out_.push(pc, code.serial());
    switch (frame_kind_at(code, address(pc))) {
      case FrameState::Kind::kNone: return go_on(rsp, rbp);
      case FrameState::Kind::kPushed:
        return on_stack(rsp + 8) ? go_on(rsp + 8, word_at(rsp)) : gap(SampleGap::kBrokenChain);
      case FrameState::Kind::kMade: {
        bool fits = on_stack(rbp) && on_stack(rbp + 8) && rbp >= rsp;
        return fits ? go_on(rbp + 8, word_at(rbp)) : gap(SampleGap::kBrokenChain);
      }
    }
  }

  // A return address lies in `slot`, and `rbp` is what the caller has in that register.
  void go_on(uint64_t slot, uint64_t rbp) {
    while (true) {
      if (!on_stack(slot)) return gap(SampleGap::kBrokenChain);
      uint64_t pc = word_at(slot);
      if (!walk_.space.contains(address(pc - 1))) return from_host(slot + 8);
      if (activation_ != nullptr && rbp == invoke_rbp()) {
        leave_invoke();
        return from_host(rbp + 16);
      }
      if (const Code* code = walk_.space.owner_of(address(pc - 1))) {
        if (!out_.push(pc - 1, code->serial())) return gap(SampleGap::kTooDeep);
      }
      if (!on_stack(rbp) || !on_stack(rbp + 8) || rbp <= slot || rbp >= end()) {
        return gap(SampleGap::kBrokenChain);
      }
      slot = rbp + 8;
      rbp = word_at(rbp);
    }
  }

  // The frames above `rsp` are host code's, or a routine's.
  void from_host(uint64_t rsp) {
    if (activation_ == nullptr) return;
    uint64_t last = std::min(end(), rsp + SampleWalk::kMostScanned);
    bool routine = false;
    for (uint64_t slot = (rsp + 7) & ~uint64_t{7}; slot < last && on_stack(slot); slot += 8) {
      uint64_t pc = word_at(slot);
      if (!walk_.space.contains(address(pc - 1))) continue;
      const Code* code = walk_.space.owner_of(address(pc - 1));
      if (code == nullptr) {
        routine = true;
        continue;
      }
      if (!follows_call(*code, pc)) continue;
      uint64_t rbp = frame_of(*code, slot);
      bool in_host = called_host(walk_.space, *code, pc);
      Chain chain = follow(rbp, in_host);
      if (chain == Chain::kNone) continue;
      if (chain == Chain::kToHost) return gap(SampleGap::kUncertain);
      // A word that looks like a routine's may be a stale one; the call itself says more.
      if (out_.count == 0 && routine && !in_host) out_.leaf = SampleLeaf::kRuntime;
      return go_on(slot, rbp);
    }
    // Code that has not called any guest code yet, or the invoke itself.
    if (out_.count == 0 && before_guest_code(rsp)) return;
    gap(SampleGap::kNoFrame);
  }

  // Between the invoke routine's frame and `rsp` there is room for nothing but a call of it.
  bool before_guest_code(uint64_t rsp) const {
    return activation_ != nullptr && activation_->stack_pointer <= rsp + 16;
  }

  // Returns the frame pointer of `code` when the return address of its callee lies in `slot`.
  static uint64_t frame_of(const Code& code, uint64_t slot) {
    return slot + 8 + code.tables().frame_size + code.tables().baseline_frame;
  }

  enum class Chain {
    kNone,      // not a chain of frames that all stand
    kToInvoke,  // it ends at the innermost invoke
    kToHost     // it ends at host code that has called an entry
  };

  // Follows the chain of frames from `rbp`. `in_host`: its innermost frame called host code.
  Chain follow(uint64_t rbp, bool in_host) const {
    constexpr int kLinks = 1000;
    for (int i = 0; i < kLinks; ++i) {
      if (!on_stack(rbp) || !on_stack(rbp + 8) || rbp % 16 != 0 || rbp >= end())
        return Chain::kNone;
      uint64_t pc = word_at(rbp + 8), next = word_at(rbp);
      if (!walk_.space.contains(address(pc - 1))) {
        return in_host && walk_.host.called_by_address(pc) ? Chain::kToHost : Chain::kNone;
      }
      if (walk_.routines.in_invoke(address(pc))) {
        return next == invoke_rbp() ? Chain::kToInvoke : Chain::kNone;
      }
      const Code* code = walk_.space.owner_of(address(pc - 1));
      if (code != nullptr) {
        bool stands = next == frame_of(*code, rbp + 8) && follows_call(*code, pc) &&
                      !called_host(walk_.space, *code, pc);
        if (!stands) return Chain::kNone;
      }
      if (next <= rbp) return Chain::kNone;
      rbp = next;
    }
    return Chain::kToInvoke;
  }

  const SampleWalk& walk_;
  sampler::StackRecord& out_;
  const sampler::Activation* activation_;  // whose frames are walked
};

}  // namespace

void walk_sample(const SampleWalk& walk, void* machine, sampler::StackRecord& out) noexcept {
  const CodeReading reading;  // addresses on the stack may be stale
  const greg_t* registers = static_cast<const ucontext_t*>(machine)->uc_mcontext.gregs;
  SampleWalker(walk, out).run(static_cast<uint64_t>(registers[REG_RIP]),
                              static_cast<uint64_t>(registers[REG_RSP]),
                              static_cast<uint64_t>(registers[REG_RBP]));
}
// NOLINTEND(performance-no-int-to-ptr)

}  // namespace uptier::jit
