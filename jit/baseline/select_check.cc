// Checks at loop headers.
//
//   plain:        dec dword [countdown]; jle slow     or, in a held stretch: dec r10d; jle slow
//   instrumented: inc dword [countdown]; jns slow
//
// Where a block of a plain copy ends with a jump back to a header, the jump is the check:
//
//   dec r10d; jg behind the header's check; jmp slow
//
// so that a loop which is tested at its top pays no more than it would without a check. Not around
// jump tables: an interpreter's loop took 1 to 14 % longer with a conditional jump in its place
// (docs/notes/0021).
//
// In a held stretch (held_stretches.h) the plain copy keeps the method's countdown in r10: edges into
// the stretch load it, edges out of it and returns store it, and so do calls, exits and the slow
// sides. Nobody else can look at it in between, since a countdown is its thread's own. A trap loses
// what the stretch has counted down since.
//
// Bodies with such a stretch keep r10 out of the hands of values, in both copies alike.
#include "jit/baseline/selector.h"
#include "sampler/context.h"

namespace uptier::jit::baseline {

// Changes the scratch register.
Mem Selector::loop_countdown() {
  return b_.method_word(kScratch, in_.method, sampler::kLoopCountdownOffset, 4);
}

void Selector::load_countdown() { a_.mov(kCountdown.r32(), loop_countdown()); }

void Selector::store_countdown() { a_.mov(loop_countdown(), kCountdown.r32()); }

void Selector::cross_held(const Edge& e) {
  if (!crosses_held(e)) return;
  held(e.to) ? load_countdown() : store_countdown();
}

// ---- Checks -------------------------------------------------------------------------------------

void Selector::loop_header(const Inst& i) {
  LoopEntry& entry = b_.tables().loops[i.aux];
  bool in_register = held(current_);
  if (instrumented_ || request_.loop_checks) {
    LoopSlow s{i.aux, b_.new_label(), b_.new_label(), in_register, tables_.size()};
    if (instrumented_) {
      a_.inc(loop_countdown());
      a_.jns(s.slow);
    } else {
      count_down(in_register);
      a_.jle(s.slow);
    }
    b_.bind(s.resume);
    loop_slow_.push_back(s);
    check_of_[current_.index()] = static_cast<uint32_t>(loop_slow_.size());
  }
  entry.continue_offset = entry.arrive_offset = b_.offset();
  // Behind the check, so that whoever comes from optimized code gets on before he is asked again.
  mark_entry(position_);
  count_iteration(LoopId(i.aux));
}

void Selector::count_down(bool in_register) {
  if (in_register) return static_cast<void>(a_.dec(kCountdown.r32()));
  a_.dec(loop_countdown());
}

void Selector::jump_to(Block b) {
  uint32_t check = instrumented_ ? 0 : check_of_[b.index()];
  bool around_table = check != 0 && loop_slow_[check - 1].tables != tables_.size();
  if (check == 0 || around_table) return static_cast<void>(a_.jmp(label(b)));
  const LoopSlow& s = loop_slow_[check - 1];
  count_down(s.held);
  a_.jg(s.resume);
  a_.jmp(s.slow);
}

void Selector::emit_loop_slow() {
  for (const LoopSlow& s : loop_slow_) {
    b_.bind(s.slow);
    if (s.held) store_countdown();
    a_.mov(x86::edi, imm(in_.method.index()));
    a_.mov(x86::esi, imm(s.loop));
    a_.mov(x86::rdx, x86::rbp);
    a_.mov(x86::rcx, imm(reinterpret_cast<uintptr_t>(in_.helpers.runtime)));
    b_.call_address(instrumented_ ? in_.helpers.loop_slow_instrumented
                                  : in_.helpers.loop_slow_plain);
    b_.jump_untracked(x86::rax);
    LoopEntry& entry = b_.tables().loops[s.loop];
    entry.arrive_offset = b_.offset();
    // Whoever comes from another copy brings no slab pointer.
    if (instrumented_) load_slab();
    arrive_in_loops();
    if (s.held) {
      entry.continue_offset = b_.offset();
      load_countdown();
    }
    a_.jmp(s.resume);
  }
}

}  // namespace uptier::jit::baseline
