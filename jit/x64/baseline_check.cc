// Checks at loop headers.
//
//   plain:        dec dword [countdown]; jle slow     or, where it is held: dec r10d; jle slow
//   instrumented: inc dword [countdown]; jns slow
//
// In a plain copy, if a block ends with a jump back to a header, that jump does the check:
//
//   dec r10d; jg past the header's check; jmp slow
//
// So a loop that is tested at its top pays no more than without a check. This is not done across
// jump tables: an interpreter's loop took 1 to 14 % longer with a conditional jump in place of its
// jump (docs/notes/0021).
#include "jit/x64/baseline_assembler.h"

#include "sampler/context.h"

namespace uptier::jit::x64 {

// Changes the scratch register.
Mem BaselineAssembler::loop_countdown() {
  return b_.method_word(kScratch, in_.method, sampler::kLoopCountdownOffset, 4);
}

void BaselineAssembler::load_countdown() {
  a_.mov(kCountdown.r32(), loop_countdown());
  b_.method_word_used();
}

void BaselineAssembler::store_countdown() {
  a_.mov(loop_countdown(), kCountdown.r32());
  b_.method_word_used();
}

uint32_t BaselineAssembler::loop_check(uint32_t loop, bool held) {
  LoopSlow s{loop, b_.new_label(), b_.new_label(), held, tables_.size()};
  if (in_.instrumented) {
    a_.inc(loop_countdown());
    b_.method_word_used();
    a_.jns(s.slow);
  } else {
    count_down(held);
    a_.jle(s.slow);
  }
  b_.bind(s.resume);
  loop_slow_.push_back(s);
  return static_cast<uint32_t>(loop_slow_.size() - 1);
}

void BaselineAssembler::count_down(bool in_register) {
  if (in_register) return static_cast<void>(a_.dec(kCountdown.r32()));
  a_.dec(loop_countdown());
  b_.method_word_used();
}

bool BaselineAssembler::jump_past_check(uint32_t check) {
  const LoopSlow& s = loop_slow_[check];
  if (s.tables != tables_.size()) return false;
  count_down(s.held);
  a_.jg(s.resume);
  a_.jmp(s.slow);
  return true;
}

void BaselineAssembler::mark_loop(uint32_t loop) {
  LoopEntry& entry = b_.tables().loops[loop];
  entry.continue_offset = entry.arrive_offset = b_.offset();
}

void BaselineAssembler::emit_loop_slow() {
  for (const LoopSlow& s : loop_slow_) {
    b_.bind(s.slow);
    if (s.held) store_countdown();
    b_.load_method_index(x86::edi, in_.method);
    a_.mov(x86::esi, imm(s.loop));
    a_.mov(x86::rdx, x86::rbp);
    b_.load_address(x86::rcx, in_.helpers.runtime);
    b_.call_address(in_.instrumented ? in_.helpers.loop_slow_instrumented
                                     : in_.helpers.loop_slow_plain);
    b_.jump_untracked(x86::rax);
    LoopEntry& entry = b_.tables().loops[s.loop];
    entry.arrive_offset = b_.offset();
    // Frames of other copies do not bring a slab pointer.
    if (in_.instrumented) load_slab();
    arrive_in_loops();
    if (s.held) {
      entry.continue_offset = b_.offset();
      load_countdown();
    }
    a_.jmp(s.resume);
  }
}

}  // namespace uptier::jit::x64
