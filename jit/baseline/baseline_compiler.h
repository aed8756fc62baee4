// BaselineCompiler: the driver of baseline compilation: one pass over a Function, in order, that
// tells a TargetAssembler what to emit.
//
// This class knows the IR but no machine. The assembler knows the machine but no IR. So compiling
// from another representation than a Function only needs another class in place of this one.
//
// The instrumented copy differs from the plain one only in the code for probes and loop checks.
//
// A comparison whose only use is the next instruction is not emitted at its place: it waits, and
// the branch, trap_if, guard or select emits it and reads the flags.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "jit/analysis/deopt_targets.h"
#include "jit/analysis/liveness.h"
#include "jit/baseline/baseline_request.h"
#include "jit/baseline/flow_places.h"
#include "jit/baseline/held_stretches.h"
#include "jit/baseline/loop_probes.h"
#include "jit/baseline/target_assembler.h"
#include "jit/code/compile_input.h"

namespace uptier::jit::baseline {

class BaselineCompiler {
 public:
  struct Input {
    const CompileInput& compile;
    const Function& function;  // with deopts attached if guards exit to the host
    const BaselineRequest& request;
    const FrameLayout& frame;
    const Liveness& live;
    bool check_stack;
    bool records = false;  // record() follows, not publish()
  };
  explicit BaselineCompiler(const Input& in);

  void run();
  // Bytes below the frame pointer.
  uint32_t frame_size() const { return a_.frame_size(); }
  Result<std::unique_ptr<Code>> publish() { return a_.publish(); }
  Result<RecordedCode> record() { return a_.record(); }

 private:
  using Label = TargetAssembler::Label;
  using Condition = TargetAssembler::Condition;
  struct EdgeStub {
    Label at;
    const Edge* edge;
  };

  // ---- Values, blocks
  void describe_values(const Liveness& live);
  void begin_values(Block b, bool keep);
  void end_values(Block b);
  bool reads_operands(const Inst& i) const;
  void block(size_t position);
  void begin_line(Block b);
  void instruction(const Inst& i, const Inst* next);
  bool skip_dead(const Inst& i);
  bool counts_nothing(const Inst& i) const;
  bool can_wait(const Inst& i, const Inst* next) const;
  void mark_entry(uint32_t point);

  // ---- Instructions
  void dispatch(const Inst& i);
  void other(const Inst& i);
  TargetAssembler::Access access(const Inst& i, size_t first) const;
  bool is_frame_memory(Value v) const;
  Condition condition(Value v);
  Condition compare(const Inst& i);
  void set_from_compare(const Inst& i);
  void select(const Inst& i);
  void guard(const Inst& i);
  void frame_state(const Inst& i);
  void call(const Inst& i);
  void probe(const Inst& i);
  void loop_header(const Inst& i);

  // ---- Ends of blocks
  void jump(const Inst& i);
  void branch(const Inst& i);
  void switch_on(const Inst& i);
  void return_value(const Inst& i);
  void go_to(const Edge& e);
  // Goes to a block whose label is or will be bound; a jump back to a loop's header skips its
  // check.
  void jump_to(Block b);
  void edge_or_stub(const Edge& e, std::vector<EdgeStub>& stubs, Label& target);
  void emit_edge(const Edge& e);
  bool is_next(Block b) const { return b == next_; }
  // Created on first use: a block reached only by falling through needs none.
  Label label(Block b) {
    Label& l = labels_[b.index()];
    if (!l.isValid()) l = a_.new_label();
    return l;
  }
  bool has_moves(const Edge& e) const { return a_.needs_moves(f_.list(e.args), f_.params(e.to)); }
  // Returns whether an edge needs instructions of its own: moves, counters or probes.
  bool has_code(const Edge& e) const {
    return has_moves(e) || flow_.along(e) != ProbePlan::kNone || loops_.crosses(current_, e.to) ||
           crosses_held(e);
  }
  bool held(Block b) const { return !instrumented_ && !held_.empty() && held_[b.index()]; }
  bool crosses_held(const Edge& e) const { return held(current_) != held(e.to); }

  const BaselineRequest& request_;
  const FrameLayout& frame_;
  const Function& f_;
  bool lines_;
  bool instrumented_;
  const ProbePlan* probes_;             // null in a plain copy
  std::vector<bool> held_;              // by Block::index(); empty: no held stretch
  std::vector<uint32_t> predecessors_;  // edges into a block
  TargetAssembler a_;
  FlowPlaces flow_;
  LoopProbes loops_;
  std::vector<Label> labels_;       // by Block::index()
  std::vector<uint32_t> check_of_;  // by Block::index(): 1 + the check of a loop; 0: none yet
  Block current_;                   // the block that is being emitted
  Block next_;                      // the block that is laid out after it
  uint32_t position_ = 0;           // of current_ in the layout
  const Inst* waiting_ = nullptr;   // the comparison that was not emitted yet
  bool waiting_negated_ = false;    // eqz of it is wanted
  Value waiting_result_;
  std::vector<StatePoint> states_;  // filled if the body can be entered
  size_t next_state_ = 0;
};

}  // namespace uptier::jit::baseline
