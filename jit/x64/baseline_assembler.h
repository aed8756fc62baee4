// BaselineAssembler: the baseline compiler's code for each operation on x86-64.
//
// Its user, baseline/baseline_compiler.h, names the operations in order. Nothing here knows the IR:
// operands are numbers of values, and values() must be told their types, constants and uses
// beforehand.
//
//   entry:  push rbp; mov rbp, rsp; sub rsp, N; stack check; [slab pointer]
//   blocks: the operations of the user
//   after:  slow paths of probes, loop checks and counters; entries and exits; jump tables; traps;
//           constants                                                        all by finish()
//
// The frame: canonical slots, spill slots, then room for outgoing stack arguments at rsp. N is
// known only at the end, and patched in.
//
// Operations read their operands, use up one use of each, and define their result in values(). All
// preserve the values in other registers. An operation that sets the flags returns the condition to
// test; only the operations documented as such may come between it and the operation that takes the
// condition.
//
// At a *held* place the method's countdown of loop iterations is in kCountdown: see
// baseline/held_stretches.h.
//
//   Thread: none of its own. Errors: kept until publish().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jit/analysis/frame_layout.h"
#include "jit/code/compile_input.h"
#include "jit/probes/probe_plan.h"
#include "jit/x64/code_buffer.h"
#include "jit/x64/macros.h"
#include "jit/x64/value_cache.h"

namespace uptier::jit::x64 {

inline constexpr Gp kCountdown = x86::r10;

class BaselineAssembler {
 public:
  using Label = jit::Label;
  using Condition = jit::FlagCondition;

  struct Input {
    CodeSpace& space;
    MethodId method;
    const Helpers& helpers;
    CallResolver& calls;
    const FrameLayout& frame;
    bool instrumented = false;
    bool check_stack = false;
    bool enterable = false;           // records entries: mark_entry(), calls
    bool observes_loops = false;      // there are loop probes
    bool holds_countdown = false;     // kCountdown holds no values
    const ProbePlan* plan = nullptr;  // of the instrumented copy; null: the default one
    bool block_rows = true;           // the code gets CodeTables::probes
    bool records = false;             // record() follows, not publish()
  };
  explicit BaselineAssembler(const Input& in);

  ValueCache& values() { return values_; }
  const ValueCache& values() const { return values_; }
  CodeTables& tables() { return b_.tables(); }
  uint32_t offset() const { return b_.offset(); }

  // ---- The body as a whole (baseline_assembler.cc)
  void prologue();
  // Defines the function's parameters at the places where the caller put them.
  void take_parameters(std::span<const Value> params);
  // Emits the code after the body. `call_points`: the first point that is a return from a call.
  void finish(uint32_t call_points);
  // Bytes below rbp; after finish().
  uint32_t frame_size() const { return frame_size_; }
  Result<std::unique_ptr<Code>> publish();
  Result<RecordedCode> record();

  // ---- Control flow (baseline_control.cc)
  Label new_label() { return b_.new_label(); }
  void bind(const Label& l) { b_.bind(l); }
  void jump(const Label& to) { a_.jmp(to); }
  void jump_if(Condition c, const Label& to) { emit_jump_if(b_, c, to); }
  // Jumps to the target with the number `index`; the last one is for all other indices. A chain
  // compares with each.
  void switch_chain(Value index, std::span<const Label> targets);
  void switch_table(Value index, std::vector<Label> targets);
  // Puts the function's result where the caller expects it.
  void set_result(Value v);
  void leave_frame();  // and returns
  void trap(TrapCode code, Origin loc) { b_.trap_now(code, loc); }
  void trap_if(Condition c, TrapCode code, Origin loc) {
    emit_jump_if(b_, c, b_.trap_label(code, loc));
  }
  // Code emitted from here on belongs to a block site, until the end of the block.
  void begin_site(SiteId site) { b_.probe_row(site, 0, true); }
  void end_site() { b_.end_rows(); }
  // Code emitted from here on belongs to an instruction; `first`: of a block.
  void line(Origin at, bool first) { first ? b_.first_line_row(at) : b_.line_row(at); }

  // ---- Checks at loop headers (baseline_check.cc)
  // Emits the check of a loop header, and returns the check's number.
  uint32_t loop_check(uint32_t loop, bool held);
  // Jumps past a check that was emitted before, after a check of its own. Returns false and emits
  // nothing if a jump table lies between.
  bool jump_past_check(uint32_t check);
  // Marks this place as the one where frames of other copies enter a loop.
  void mark_loop(uint32_t loop);
  void load_countdown();
  void store_countdown();

  // ---- Edges: arguments to canonical slots (baseline_moves.cc)
  bool needs_move(Value arg, Value param) const;
  bool needs_moves(std::span<const Value> args, std::span<const Value> params) const;
  void move_to_slots(std::span<const Value> args, std::span<const Value> params);

  // ---- Integers (baseline_int.cc)
  enum class Binary : uint8_t { kAdd, kSub, kMul, kAnd, kOr, kXor };
  void binary(Binary op, Type t, Value result, Value a, Value b);
  void shift(Opcode op, Type t, Value result, Value v, Value count);
  void divide(Opcode op, Type t, Value result, Value dividend, Value divisor, Origin loc);
  void multiply_high(Opcode op, Type t, Value result, Value x, Value y);
  void bit_count(Opcode op, Type t, Value result, Value v);
  void sign_extend(Opcode op, Type t, Value result, Value v);
  void zero(Value result);
  // Traps on overflow.
  void checked(Binary op, Type t, Value result, Value a, Value b, Origin loc);

  // ---- Floats and conversions (baseline_float.cc)
  void float_binary(Opcode op, Type t, Value result, Value x, Value y);
  void float_unary(Opcode op, Type t, Value result, Value v);
  void convert_width(Opcode op, Value result, Value v);
  void bitcast(Type t, Value result, Value v);
  void truncate(Opcode op, Type t, Value result, Value v, Origin loc);
  void convert_int(Opcode op, Type t, Value result, Value v);
  void extend(Opcode op, Value result, Value v);

  // ---- Memory (baseline_memory.cc)
  struct Access {
    Value base;
    Value index = Value::none();
    uint32_t offset = 0;
    bool fuel = false;      // accesses the thread's fuel; the base is used up, but not read
    bool in_frame = false;  // the base is frame_memory(); it is used up, but not read
    bool traps = false;     // a fault is a trap
    Origin loc;
  };
  void load(Opcode op, Type t, Value result, const Access& at);
  void store(Opcode op, Type t, Value v, const Access& at);
  // kFill, kCopy: `from` is the value to store or the source address; `width`: bytes of an element.
  void bulk(Opcode op, Value from, Value to, Value count, uint32_t width, bool traps, Origin loc);
  // Clears the first `bytes` bytes of the frame's own memory; the result is its address.
  void frame_memory(Value result, uint64_t bytes);

  // ---- Conditions (baseline_condition.cc)
  Condition compare_ints(Opcode op, Type t, Value x, Value y);
  Condition compare_floats(Opcode op, Type t, Value x, Value y);
  // `op` is kEq or kNe.
  Condition compare_zero(Opcode op, Value v);
  Condition overflow(Binary op, Type t, Value a, Value b);
  void set(Condition c, Value result);
  // A selection: begin_select, then the operation that sets the flags, then end_select.
  struct Selection {
    unsigned from;  // registers
    unsigned to;
  };
  Selection begin_select(Type t, Value when_set, Value otherwise);
  void end_select(Selection s, Condition c, Type t, Value result, Value when_set);

  // ---- Calls (baseline_call.cc)
  struct Call {
    enum class Kind : uint8_t { kMethod, kIndirect, kHost };
    Kind kind;
    MethodId method = {};           // kMethod
    Value target = {};              // kIndirect
    const void* address = nullptr;  // kHost
    // For kIndirect: counts the targets; null: they are not counted.
    const ProbePlan::Site* site = nullptr;
    const Signature* signature = nullptr;
    std::span<const Value> args;
    Value result;  // none: there is none
    Type type = Type::kNone;
    Origin loc;
    SiteId call_site = 0;
    bool may_trap = false;          // the host may leave a pending trap
    bool returns_to_point = false;  // code may be entered at the call's return address
    bool held = false;
  };
  void call(const Call& c);

  // ---- Entries in the middle of the body, and exits (baseline_exit.cc)
  // Marks a place where frames of other code may enter. Values that registers hold here are in the
  // frame as well if they are needed: live values have canonical slots here.
  void mark_entry(uint32_t point, bool held);
  struct ExitPlace {
    uint32_t exit = 0;   // its number, see analysis/deopt_targets.h
    uint32_t point = 0;  // the point where the host's interpreter continues
    uint32_t pc = 0;
    GuardReason reason{};
    Origin loc;
    bool in_loop = false;
  };
  // Leaves for the host's interpreter unless the condition holds, and takes along `values`, which
  // are used once each. `asks`: if the condition holds, asks the runtime whether to leave anyway.
  void leave_unless(Condition c, const ExitPlace& place, std::span<const Value> values, bool held,
                    bool asks);

  // ---- Counters of control flow (baseline_counters.cc)
  void load_slab();
  // Increments the counter at an offset of the slab; does nothing for ProbePlan::kNone. Changes r11
  // and the flags.
  void count(uint32_t offset);

  // ---- Probes of sites and loops (baseline_probe.cc)
  // `v` is used up; none for kHit. `number`, `tag`: of the probe, for kLog.
  void observe(const ProbePlan::Site& s, Value v, uint32_t number, uint32_t tag);
  // `at`: offset of the loop's words; kNone: not observed. `extra`: see sampler::LoopKey.
  void enter_loop(uint32_t at, uint32_t extra);
  void leave_loop(uint32_t at, uint32_t extra);
  void count_iteration(uint32_t at);

 private:
  struct LoopSlow {
    uint32_t loop;
    Label slow, resume;
    bool held;
    size_t tables;  // jump tables before it
  };
  struct CounterSlow {
    Label slow, resume;
    uint32_t offset;
  };
  struct JumpTable {
    Label at;
    std::vector<Label> targets;
  };
  struct Move {
    Value from;
    int32_t to;
  };
  // A call of a probe's routine, after the body. `value` is a general register.
  struct ProbeSlow {
    Label slow, resume;
    ProbeRoutine routine;
    uint32_t offset;
    uint32_t value;
    uint32_t extra;
  };
  // A point where the body can be entered, and the values that its registers hold there.
  struct Entry {
    uint32_t point;
    Label at;
    std::vector<ValueCache::Cached> cached;
    bool held;
  };
  struct Exit {
    Label at;
    ExitPlace place;
    SiteId site;
    std::vector<ExitValue> values;
    bool held;
    Label back = {};  // valid if the exit may return
  };
  // A register to be filled for a call: the value and the register's id (as in ValueCache).
  struct ArgMove {
    Value from;
    uint8_t to;
  };

  void check_stack();
  void emit_tables();

  void count_down(bool in_register);
  Mem loop_countdown();
  void emit_loop_slow();

  void move_memory(std::vector<Move>& moves);
  void move_slot(int32_t from, int32_t to, bool wide);
  void store_value(Value v, const Mem& to);
  void load_arguments(std::vector<ArgMove>& moves);
  void move_registers();

  bool add_to_third(Type t, Value result, Value a, Value b);
  void multiply_by_constant(Type t, Value result, Value a, Value constant);
  void apply(Binary op, const Gp& d, Value v, bool wide);

  // Returns v as the second operand of an SSE instruction: register, home, or constant.
  asmjit::Operand float_operand(Value v);
  void float_op(Opcode op, bool wide, const Xmm& d, const asmjit::Operand& s);

  // Builds the operand of an access. The address registers stay pinned.
  Mem address(const Access& at);
  void use_address(const Access& at);
  void row(bool traps, Origin loc);
  void store_constant(Opcode op, Type t, Value v, Mem to, const Access& at);

  void pass_arguments(std::span<const Value> args, const Signature& s);
  void emit_call(const Call& c);
  uint32_t emit_call_alone(const Call& c);
  void take_result(const Call& c);

  ExitValue place_of(Value v) const;
  void emit_entries(uint32_t call_points);
  void emit_exits();

  void increment(const Mem& at, bool lock);
  void increment_scalable(uint32_t offset, uint32_t width);
  void emit_counter_slow();

  // Returns a register with the 64 bits of v that a probe records. It may be v's own.
  Gp observed(Value v);
  void count_in_table(const ProbePlan::Site& s, const Gp& value);
  void count_in_range(const ProbePlan::Site& s, Value v);
  void log(const ProbePlan::Site& s, const Gp& value, uint32_t number, uint32_t tag);
  void probe_slow(ProbeRoutine r, uint32_t offset, uint32_t value, uint32_t extra,
                  x86::CondCode when);
  void call_probe(ProbeRoutine r, uint32_t offset, uint32_t value, uint32_t extra);
  void emit_probe_slow();
  bool frames_differ() const;
  void arrive_in_loops();
  Mem slab() const { return x86::qword_ptr(x86::rbp, kSlabSlot); }
  Mem slab_word(uint32_t offset) const {
    return x86::qword_ptr(kScratch, static_cast<int32_t>(offset));
  }

  const Input in_;
  const ProbePlan* probes_;  // null in a plain copy
  CodeBuffer b_;
  Assembler& a_;
  ValueCache values_;
  Label self_;                // the start of the code
  uint32_t frame_patch_ = 0;  // offset of N
  uint32_t frame_size_ = 0;
  uint32_t outgoing_words_ = 0;
  std::vector<Entry> entries_;
  std::vector<uint32_t> returns_;  // of calls, by call point
  std::vector<Exit> exits_;
  std::vector<LoopSlow> loop_slow_;
  std::vector<CounterSlow> counter_slow_;
  std::vector<ProbeSlow> probe_slow_;
  std::vector<uint32_t> arrive_patches_;  // offsets of -N
  std::vector<JumpTable> tables_;
  // Scratch space of the moves, empty in between.
  std::vector<Move> moves_;
  std::vector<ArgMove> arg_moves_;
  std::vector<uint32_t> readers_, writer_;  // by canonical slot
  std::vector<uint32_t> ready_;
  int8_t source_[32];  // by register: the register that it is to be filled from, or -1
};

}  // namespace uptier::jit::x64
