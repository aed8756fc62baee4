// Selector: one pass over a Function, instruction by instruction, into a CodeBuffer.
//
//   entry:  push rbp; mov rbp, rsp; sub rsp, N; stack check; [slab pointer]
//   block:  [loop check] [probe] instructions; flush; terminator with the moves of its edges
//   behind: slow sides of probes, counters and loop checks, ways in and out, jump tables, traps,
//           constants
//
// The frame: canonical slots, spill slots, then room for outgoing stack arguments at rsp. N is
// known at the end and patched. The instrumented copy differs from the plain one by what it emits
// for probes and loop checks, and by nothing else.
//
// A comparison whose only use is the instruction behind it is not emitted where it stands: it
// waits, and the branch, trap_if, guard or select emits it and reads the flags.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "jit/analysis/deopt_targets.h"
#include "jit/analysis/flow_graph.h"
#include "jit/analysis/loop_forest.h"
#include "jit/baseline/held_stretches.h"
#include "jit/baseline/value_cache.h"
#include "jit/baseline/baseline_request.h"
#include "jit/code/compile_input.h"
#include "jit/x64/call_layout.h"
#include "jit/x64/code_buffer.h"
#include "jit/x64/macros.h"

namespace uptier::jit::baseline {

inline constexpr Gp kCountdown = x86::r10;

class Selector {
 public:
  struct Input {
    const CompileInput& compile;
    const Function& function;  // with deopts attached when guards leave for the host
    const BaselineRequest& request;
    const FrameLayout& frame;
    const Liveness& live;
    bool check_stack;
  };
  explicit Selector(const Input& in);

  void run();
  // Bytes below rbp.
  uint32_t frame_size() const { return frame_size_; }
  Result<std::unique_ptr<Code>> publish();

 private:
  enum class Binary : uint8_t { kAdd, kSub, kMul, kAnd, kOr, kXor };
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
  // Where an edge-counting copy counts: offsets in the slab, kNone where it does not.
  struct FlowPlaces {
    bool counts_edges = false;
    uint32_t entry = ProbePlan::kNone;
    std::vector<uint32_t> number;               // see edge_numbers()
    std::vector<uint32_t> at_start, at_return;  // by Block::index()
    std::vector<uint32_t> along;                // by index in Function::edges
  };
  struct EdgeStub {
    Label at;
    const Edge* edge;
  };
  struct JumpTable {
    Label at;
    std::vector<Label> targets;
  };
  struct Move {
    Value from;
    int32_t to;
  };
  // A probe's call of its routine, behind the body. `value` is a general register.
  struct ProbeSlow {
    Label slow, resume;
    ProbeRoutine routine;
    uint32_t offset;
    uint32_t value;
    uint32_t extra;
    uint32_t skip = ProbePlan::kNone;  // where events to leave out are counted down
  };
  // A point where the body can be entered, and what its registers hold there.
  struct Entry {
    uint32_t point;
    Label at;
    std::vector<ValueCache::Cached> cached;
    bool held;
  };
  // A guard's way to the host's interpreter.
  struct Exit {
    Label at;
    const Inst* guard;
    SiteId site;
    std::vector<ExitValue> values;
    bool held;
    Label back = {};  // of an exit that may stay
  };
  // Registers to be filled for a call: a value and where it goes (ids as in ValueCache).
  struct ArgMove {
    Value from;
    uint8_t to;
  };

  // selector.cc
  void prologue();
  void check_stack();
  void place_arguments();
  void block(size_t position);
  void instruction(const Inst& i, const Inst* next);
  void dispatch(const Inst& i);
  bool skip_dead(const Inst& i);
  bool counts_nothing(const Inst& i) const;
  bool can_wait(const Inst& i, const Inst* next) const;
  void finish();
  void emit_tables();

  // select_int.cc
  void binary(const Inst& i, Binary op);
  bool add_to_third(const Inst& i, Value a, Value b);
  void multiply_by_constant(const Inst& i, Value a, Value constant);
  void shift(const Inst& i);
  void divide(const Inst& i);
  void multiply_high(const Inst& i);
  void bit_count(const Inst& i);
  void sign_extend(const Inst& i);
  void known_count(const Inst& i);
  void overflow_trap(const Inst& i);
  void apply(Binary op, const Gp& d, Value v, bool wide);

  // select_float.cc
  void float_binary(const Inst& i);
  void float_unary(const Inst& i);
  void convert_width(const Inst& i);
  void bitcast(const Inst& i);
  void truncate(const Inst& i);
  void convert_int(const Inst& i);
  void extend(const Inst& i);
  // Returns v as the second operand of an SSE instruction: register, home, or constant.
  asmjit::Operand float_operand(Value v);
  void float_op(Opcode op, bool wide, const Xmm& d, const asmjit::Operand& s);

  // select_memory.cc
  void load(const Inst& i);
  void store(const Inst& i);
  void bulk(const Inst& i);
  void frame_memory(const Inst& i);
  // Builds the operand of an access from operands `first` and on. Addresses stay pinned.
  Mem address(const Inst& i, size_t first);
  bool is_frame_memory(Value v) const;
  void use_address(const Inst& i, size_t first);
  void row(const Inst& i);
  bool store_constant(const Inst& i, Mem at);

  // select_condition.cc
  // Emits what sets the flags for a condition (a waiting comparison or a test of v), uses its
  // operands, and returns what to test.
  Condition condition(Value v);
  Condition compare(const Inst& i);
  Condition compare_ints(const Inst& i);
  Condition compare_zero(Opcode op, Value v);
  Condition overflow(const Inst& i);
  void set_from_compare(const Inst& i);
  void select(const Inst& i);
  void trap_if(const Inst& i);

  // select_exit.cc
  void mark_entry(uint32_t point);
  void frame_state(const Inst& i);
  void emit_entries();
  void guard(const Inst& i);
  ExitValue place_of(Value v) const;
  void emit_exits();

  // select_check.cc
  void loop_header(const Inst& i);
  // Goes to a block whose label is bound or will be; back to a loop's header, past its check.
  void jump_to(Block b);
  // Counts an arrival in a plain copy; the flags say what is left.
  void count_down(bool in_register);
  void emit_loop_slow();
  bool held(Block b) const { return !instrumented_ && !held_.empty() && held_[b.index()]; }
  bool crosses_held(const Edge& e) const { return held(current_) != held(e.to); }
  void cross_held(const Edge& e);
  void load_countdown();
  void store_countdown();
  // With the context in r11.
  Mem loop_countdown();

  // select_control.cc
  void probe(const Inst& i);
  void jump(const Inst& i);
  void branch(const Inst& i);
  void switch_on(const Inst& i);
  void jump_through_table(const Inst& i, std::vector<Label> targets);
  void return_value(const Inst& i);
  void go_to(const Edge& e);
  void edge_or_stub(const Edge& e, std::vector<EdgeStub>& stubs, Label& target);
  bool is_next(Block b) const { return b == next_; }
  bool has_moves(const Edge& e) const;
  bool needs_move(Value arg, Value param) const;
  // Made when it is first asked for: a block that only the one before it leads to needs none.
  Label label(Block b) {
    Label& l = labels_[b.index()];
    if (!l.isValid()) l = b_.new_label();
    return l;
  }
  // Whether an edge needs instructions of its own: moves, counters or probes.
  bool has_code(const Edge& e) const {
    return has_moves(e) || counts_along(e) || crosses_loops(e) || crosses_held(e);
  }
  void emit_edge(const Edge& e);
  void load_slab();

  // select_flow.cc
  void plan_flow();
  void place_counter(const Edge& e, const ProbePlan& plan);
  void count_entry();
  void count_block(SiteId site);
  void count_along(const Edge& e);
  void count_return();
  bool counts_along(const Edge& e) const;
  // Increments the flow counter at an offset of the slab; nothing for kNone. Uses r11 and flags.
  void count(uint32_t offset);
  void increment(const Mem& at, bool lock);
  void increment_scalable(uint32_t offset, uint32_t width);
  void emit_counter_slow();
  // select_probe.cc
  void host_probe(const Inst& i);
  void count_in_table(const ProbePlan::Site& s, const Gp& value);
  void count_in_range(const ProbePlan::Site& s, Value v);
  void log(const Inst& i, const ProbePlan::Site& s, const Gp& value);
  // Returns a register with what a probe sees of v: 64 bits. It may be v's own.
  Gp observed(Value v);
  void probe_slow(ProbeRoutine r, uint32_t offset, uint32_t value, uint32_t extra,
                  x86::CondCode when);
  void call_probe(ProbeRoutine r, uint32_t offset, uint32_t value, uint32_t extra);
  void emit_probe_slow();
  Mem slab_word(uint32_t offset) const {
    return x86::qword_ptr(kScratch, static_cast<int32_t>(offset));
  }

  // select_loop.cc
  LoopId function_loop() const { return LoopId(f_.loop_count); }
  // Returns the offset of a loop's words, kNone when it is not observed.
  uint32_t loop_extra(LoopId l) const;
  uint32_t loop_words(LoopId l) const;
  bool crosses_loops(const Edge& e) const;
  void cross_loops(const Edge& e);
  void enter_loop(LoopId l);
  void leave_loop(LoopId l);
  void leave_all_loops();
  void count_iteration(LoopId l);
  bool frames_differ() const;
  void arrive_in_loops();
  void begin_ranges(Block b);
  void extend_ranges(Block b);

  // moves.cc
  void emit_moves(const Edge& e);
  void move_memory(std::vector<Move>& moves);
  void move_slot(int32_t from, int32_t to, bool wide);
  void store_value(Value v, const Mem& to);
  void load_arguments(std::vector<ArgMove>& moves);
  void move_registers();

  // select_call.cc
  void call(const Inst& i);
  void pass_arguments(std::span<const Value> args, const Signature& s);
  void emit_call(const Inst& i);
  void emit_call_alone(const Inst& i);
  void take_result(const Inst& i);

  const CompileInput& in_;
  const BaselineRequest& request_;
  const FrameLayout& frame_;
  const Function& f_;
  CodeBuffer b_;
  Assembler& a_;
  bool instrumented_;
  const ProbePlan* probes_;  // null in a plain copy
  std::vector<bool> held_;   // by Block::index(); empty: no held stretch
  ValueCache values_;
  bool check_stack_;
  std::optional<LoopForest> forest_;    // when loops are observed
  std::vector<Label> labels_;           // by Block::index()
  std::vector<uint32_t> predecessors_;  // edges into a block
  Block current_;                       // the block that is being emitted
  Block next_;                          // the block that is laid out behind it
  uint32_t position_ = 0;               // of current_ in the layout
  Label self_;
  const Inst* waiting_ = nullptr;  // the comparison that was not emitted yet
  bool waiting_negated_ = false;   // eqz of it was asked for
  Value waiting_result_;
  uint32_t frame_patch_ = 0;  // offset of N
  uint32_t frame_size_ = 0;
  uint32_t outgoing_words_ = 0;
  std::vector<StatePoint> states_;  // when the body can be entered
  size_t next_state_ = 0;
  std::vector<Entry> entries_;
  std::vector<uint32_t> returns_;  // of calls, by call point
  std::vector<Exit> exits_;
  std::vector<LoopSlow> loop_slow_;
  std::vector<uint32_t> check_of_;  // by Block::index(): 1 + where in loop_slow_; 0: none yet
  FlowPlaces flow_;
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

}  // namespace uptier::jit::baseline
