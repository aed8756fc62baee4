// The emitter's class, shared by the emit_*.cc files; see emit.h.
#pragma once

#include <unordered_map>
#include <vector>

#include "jit/regalloc/frame_plan.h"
#include "jit/x64/code_buffer.h"
#include "jit/x64/emit.h"
#include "jit/x64/macros.h"

namespace uptier::jit::x64 {

class Emitter {
 public:
  explicit Emitter(const EmitInput& in);
  Result<std::unique_ptr<Code>> run();

 private:
  // ---- emit.cc
  void find_kept();
  void lay_out_frame();
  void make_frame();
  void epilogue();
  void emit_block(uint32_t b);
  void emit_insts(uint32_t b);
  void frame_is(FrameState::Kind kind, size_t saved = 0);
  void frame_is_made() { frame_is(FrameState::Kind::kMade, saved_.size()); }
  void emit_probes(uint32_t n);
  void begin_line(const MBlock& b);
  void emit_inst(const MInst& i);
  void emit_simple(const MInst& i);
  void find_empty_blocks();
  void thread_jumps();
  bool follows(uint32_t b) const { return b == next_; }

  // ---- emit_dispatch.cc
  void find_dispatches();
  uint32_t dispatch_size(uint32_t b) const;
  bool copy_dispatch(uint32_t b, float flow);

  // ---- emit_tails.cc
  void find_room_for_tails();
  uint32_t tail_size(uint32_t b) const;
  bool copy_tail(uint32_t b, float flow);
  void emit_copy(uint32_t b, float flow);
  void go_to(uint32_t b, float flow);

  // ---- emit_moves.cc
  size_t first_move(uint32_t n) const;  // at or after instruction n
  void emit_gap(uint32_t n);
  void move(Location from, Location to);
  void load_constant(Location to, uint64_t bits);
  Mem slot(uint32_t n, uint32_t bytes) const;
  Mem place(Location l, uint32_t bytes) const;  // of a slot or an outgoing argument

  // ---- operands
  const Operand& operand(const MInst& i, uint8_t n) const { return m_.operands[i.operands_at + n]; }
  Location at(const MInst& i, uint8_t n) const { return operand(i, n).at; }
  Gp gp_at(const MInst& i, uint8_t n) const { return x86::gpq(at(i, n).index()); }
  Xmm xmm_at(const MInst& i, uint8_t n) const { return Xmm(at(i, n).index() - 16); }
  Mem memory(const MInst& i, uint32_t bytes) const;
  void claim(const MInst& i);  // adds the trap row of the next instruction
  // Calls f(operand) with operand `n`: a register of that width, or memory.
  template <typename F>
  void with(const MInst& i, uint8_t n, uint32_t bytes, F f);
  // Calls f(operand) with a 64-bit constant: in memory, or in r11 if it is to be hidden.
  template <typename F>
  void with_constant(uint64_t bits, F f);

  // ---- emit_int.cc
  void alu(const MInst& i);
  bool alu_as_lea(const MInst& i, AluOp op);
  void alu_op(AluOp op, const Gp& d, const Mem& s);
  void alu_op(AluOp op, const Gp& d, const Gp& s);
  void alu_op(AluOp op, const Gp& d, int32_t s);
  void copy(const Gp& d, const MInst& i, uint8_t n, uint32_t bytes);
  void alu_checked(const MInst& i);
  void mul_imm(const MInst& i);
  void shift_imm(const MInst& i);
  void shift_var(const MInst& i);
  void lea(const MInst& i);
  void extend(const MInst& i);
  void load(const MInst& i);
  void store(const MInst& i);
  void alu_store(const MInst& i);
  void divide(const MInst& i);
  void mul_high(const MInst& i);

  // ---- emit_float.cc
  void float_alu(const MInst& i);
  void float_unary(const MInst& i);
  void float_sign(const MInst& i);
  void convert(const MInst& i);
  void copy(const Xmm& d, const MInst& i, uint8_t n);

  // ---- emit_condition.cc
  void test(const MInst& i);
  void overflow_test(const MInst& i);
  bool flags_are_set(const MInst& i) const;
  void set(const MInst& i);
  void select(const MInst& i);
  void float_select(const MInst& i);
  void trap_if(const MInst& i);

  // ---- emit_exit.cc
  void leave(const MInst& i);
  void leave_if(const MInst& i);
  void exits();
  void undo_sum(const MInst& i);
  void exit_row(const MInst& i);
  ExitValue exit_value(const MInst& i, const MExitValue& v) const;

  void branch(const MInst& i);
  void jump_on(Cond c, const Label& to);
  void switch_on(const MInst& i);

  // ---- emit_probe.cc
  void load_slab(const Gp& d);
  Gp slab_base(const MInst& i);
  void slab_to_scratch(const MInst& i);
  void count(const MInst& i);
  void tally(const MInst& i);
  void observe(const MInst& i);
  void observe_in_range(const MInst& i);
  void observe_in_table(const MInst& i);
  void log(const MInst& i);
  void probe_calls();

  // ---- emit_call.cc
  void call(const MInst& i);
  uint32_t call_direct(const MInst& i);
  uint32_t count_and_call(const MInst& i, MethodId callee, const CallTarget& target);
  void due_calls();

  const EmitInput& in_;
  const MachineFunction& m_;
  CodeBuffer b_;
  Assembler& a_;
  Label entry_;
  std::vector<Label> labels_;       // by block
  std::vector<bool> empty_;         // by block: it contains only a jump
  std::vector<uint32_t> target_;    // by block: the final target of a jump to it
  std::vector<uint32_t> dispatch_;  // by block: instructions to copy up to a switch; 0: none
  uint32_t copied_ = 0;             // number of instructions in copies of switches so far
  uint32_t tail_room_ = 0;          // number of instructions that copies of tails may still take
  uint32_t way_ = 0;                // number of instructions in the nested copies being emitted
  float least_flow_ = 0;     // only jumps executed at least this often are replaced by copies
  float part_ = 1;           // the share of the current block's executions that come here
  uint32_t first_cold_ = 0;  // the first block of the cold part
  uint32_t now_ = 0;         // the current block
  uint32_t next_ = 0;        // the next block to be emitted, empty ones skipped
  size_t probe_ = 0;         // the next of MachineFunction::probes
  size_t move_ = 0;          // the next of Allocation::moves
  FramePlan plan_;
  std::vector<Reg> saved_;
  std::vector<Reg> kept_;  // the argument registers of parameters with assumed values
  uint32_t frame_ = 0;     // the operand of sub rsp
  bool avx_ = false;
  bool bmi2_ = false;
  // The flags tell the sign and zero of a register if nothing was emitted since `offset`.
  struct Flags {
    uint32_t offset = UINT32_MAX;
    uint32_t reg = 0;
    uint8_t width = 0;
  };
  Flags flags_;
  Label table_of(const MInst& i);
  std::unordered_map<const MInst*, Label> tables_;  // by switch
  struct Side {
    Label label;
    const MInst* from;
    Label back;  // valid if the exit may come back
  };
  std::vector<Side> sides_;  // calls after the body
  struct ProbeCall {
    Label slow, back;
    const MInst* from;
  };
  std::vector<ProbeCall> probe_calls_;  // calls of probe routines, after the body
  struct DueCall {
    Label due, back;
    const MInst* from;
    const void* target;
    SiteId block;   // where the call is
    uint32_t body;  // of the block
  };
  std::vector<DueCall> due_calls_;  // counted calls with an event, after the body
};

// Returns the condition code in asmjit's terms. Float equality has none of its own.
x86::CondCode code_of(Cond c);

template <typename F>
void Emitter::with(const MInst& i, uint8_t n, uint32_t bytes, F f) {
  Location l = at(i, n);
  if (l.is_reg()) {
    f(gp(x86::gpq(l.index()), bytes == 8));
  } else {
    f(place(l, bytes));
  }
}

template <typename F>
void Emitter::with_constant(uint64_t bits, F f) {
  if (!b_.hides(bits)) return f(b_.constant64(bits));
  emit_constant(b_, x86::r11, bits);
  f(x86::r11);
}

}  // namespace uptier::jit::x64
