#include "jit/baseline/baseline_compiler.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>

#include "jit/ir/fuel_flag.h"
#include "jit/ir/is_call.h"
#include "jit/ir/turns.h"

namespace uptier::jit::baseline {
namespace {

std::vector<uint32_t> count_predecessors(const Function& f) {
  std::vector<uint32_t> edges(f.blocks.size());
  for (Block b : f.layout) {
    for (const Edge& e : f.successors(b)) ++edges[e.to.index()];
  }
  return edges;
}

TargetAssembler::Input assembler_input(const BaselineCompiler::Input& in, bool holds_countdown) {
  bool instrumented = in.request.copy == Copy::kInstrumented;
  const ProbePlan* plan = in.request.probes;
  return {.space = in.compile.space,
          .method = in.compile.method,
          .helpers = in.compile.helpers,
          .calls = in.compile.calls,
          .frame = in.frame,
          .instrumented = instrumented,
          .check_stack = in.check_stack,
          .enterable = in.request.enterable,
          .observes_loops = instrumented && plan != nullptr && !plan->loops.empty(),
          .holds_countdown = holds_countdown,
          .plan = plan,
          .block_rows = instrumented || in.compile.block_rows,
          .records = in.records};
}

}  // namespace

BaselineCompiler::BaselineCompiler(const Input& in)
    : request_(in.request),
      frame_(in.frame),
      f_(in.function),
      lines_(in.compile.lines),
      instrumented_(in.request.copy == Copy::kInstrumented),
      probes_(instrumented_ ? in.request.probes : nullptr),
      held_(instrumented_ || in.request.loop_checks ? find_held(f_) : std::vector<bool>()),
      predecessors_(count_predecessors(f_)),
      a_(assembler_input(in, !held_.empty())),
      flow_(instrumented_ ? FlowPlaces(f_, in.request.probes, predecessors_) : FlowPlaces(f_)),
      loops_(f_, probes_, a_),
      labels_(f_.blocks.size()),
      check_of_(f_.blocks.size()) {
  describe_values(in.live);
  a_.tables().loops.resize(f_.loop_count);
  a_.tables().counts_edges = flow_.counts_edges();
  if (request_.enterable) states_ = state_points(in.compile.function, in.live);
}

void BaselineCompiler::run() {
  a_.prologue();
  if (instrumented_) {
    a_.load_slab();
    a_.count(flow_.at_entry());
    loops_.enter_function();
  }
  for (size_t i = 0; i < f_.layout.size(); ++i) block(i);
  if (lines_) a_.line({}, true);
  a_.finish(first_call_point(f_, states_.size()));
}

// ---- Values -----------------------------------------------------------------------------------

void BaselineCompiler::describe_values(const Liveness& live) {
  ValueCache& values = a_.values();
  for (Value v : live.crossing) values.set_crosses(v);
  for (uint32_t n = 0; n < f_.values.size(); ++n) {
    const ValueData& data = f_.values[n];
    values.set_type(Value(n), data.type);
    if (!data.inst.valid()) continue;
    const Inst& i = f_.inst(data.inst);
    if (i.op == Opcode::kConst) values.set_constant(Value(n), i.imm);
  }
}

// Returns whether the code of this compiler reads an instruction's operands. It does not for frame
// states, nor for probes that the plan leaves out.
bool BaselineCompiler::reads_operands(const Inst& i) const {
  if (i.op == Opcode::kFrameState || i.op == Opcode::kLoopHeader) return false;
  if (i.op != Opcode::kProbe) return true;
  return probe_kind(i) != ProbeKind::kHit && planned_site(f_, probes_, i) != nullptr;
}

void BaselineCompiler::begin_values(Block b, bool keep) {
  ValueCache& values = a_.values();
  values.begin_block(keep);
  for (InstId id : f_.block(b).insts) {
    const Inst& i = f_.inst(id);
    if (!reads_operands(i)) continue;
    for (Value v : f_.args(i)) values.count_use(v);
  }
  for (const Edge& e : f_.successors(b)) {
    for (Value v : f_.list(e.args)) values.count_use(v);
  }
}

void BaselineCompiler::end_values(Block b) {
  for (const Edge& e : f_.successors(b)) {
    for (Value v : f_.list(e.args)) a_.values().use(v);
  }
  a_.values().end_block();
}

// ---- Blocks -----------------------------------------------------------------------------------

void BaselineCompiler::block(size_t position) {
  Block b = f_.layout[position];
  current_ = b;
  position_ = static_cast<uint32_t>(position);
  loops_.begin_ranges(b);
  next_ = position + 1 < f_.layout.size() ? f_.layout[position + 1] : Block::none();
  bool keep = false;
  bool is_header = f_.inst(f_.block(b).insts[0]).op == Opcode::kLoopHeader;
  if (position != 0) {
    auto before = f_.successors(f_.layout[position - 1]);
    bool follows =
        std::any_of(before.begin(), before.end(), [&](const Edge& e) { return e.to == b; });
    keep = follows && predecessors_[b.index()] == 1 && !is_header;
  }
  if (!keep || labels_[b.index()].isValid()) a_.bind(label(b));
  if (lines_) begin_line(b);
  begin_values(b, keep);
  if (position == 0) a_.take_parameters(f_.params(f_.entry()));
  if (!is_header) mark_entry(position_);
  const auto& insts = f_.block(b).insts;
  for (size_t i = 0; i < insts.size(); ++i) {
    if (counts_nothing(f_.inst(insts[i]))) continue;
    size_t after = i + 1;
    while (after < insts.size() && counts_nothing(f_.inst(insts[after]))) ++after;
    const Inst* next = after < insts.size() ? &f_.inst(insts[after]) : nullptr;
    if (lines_) a_.line(f_.inst(insts[i]).origin(), false);
    instruction(f_.inst(insts[i]), next);
  }
  end_values(b);
  a_.end_site();
  loops_.extend_ranges(b);
}

// The probe that begins a block has no location, and belongs to the instructions after it.
void BaselineCompiler::begin_line(Block b) {
  const auto& insts = f_.block(b).insts;
  const auto at = std::ranges::find_if(insts, [&](InstId i) { return f_.inst(i).loc != 0; });
  a_.line(at == insts.end() ? Origin() : f_.inst(*at).origin(), true);
}

void BaselineCompiler::instruction(const Inst& i, const Inst* next) {
  if (skip_dead(i)) return;
  if (can_wait(i, next)) {
    bool negates = waiting_ != nullptr;  // eqz of a comparison that is already waiting
    if (negates) {
      a_.values().use(waiting_result_);
    } else {
      waiting_ = &i;
    }
    waiting_negated_ = negates ? !waiting_negated_ : false;
    waiting_result_ = i.result;
    return;
  }
  dispatch(i);
  a_.values().end_instruction();
}

// Skips an instruction without effect and without use. Its operands count as used all the same.
bool BaselineCompiler::skip_dead(const Inst& i) {
  constexpr uint8_t kMatters = kCanTrap | kWrites | kEndsBlock | kPinned;
  if (waiting_ != nullptr) return false;  // i must consume the waiting comparison
  if (!i.result.valid() || (info(i.op).effects & kMatters) != 0) return false;
  if (!a_.values().is_dead(i.result) && i.op != Opcode::kConst) return false;
  for (Value v : f_.args(i)) a_.values().use(v);
  return true;
}

// Returns whether this copy leaves out a probe. Such a probe may be between a comparison and its
// branch.
bool BaselineCompiler::counts_nothing(const Inst& i) const {
  return counts_turns(i) && planned_site(f_, probes_, i) == nullptr;
}

namespace {

bool sets_flags(Opcode op) {
  Shape s = info(op).shape;
  return s == Shape::kCompare || s == Shape::kTest;
}

}  // namespace

bool BaselineCompiler::can_wait(const Inst& i, const Inst* next) const {
  if (next == nullptr || !sets_flags(i.op)) return false;
  if (a_.values().uses(i.result) != 1 || a_.values().crosses(i.result)) return false;
  // A comparison that is already waiting was promised to this instruction.
  if (waiting_ != nullptr && i.op != Opcode::kEqz) return false;
  bool reads_condition = next->op == Opcode::kBranch || next->op == Opcode::kTrapIf ||
                         next->op == Opcode::kGuard || next->op == Opcode::kSelect ||
                         next->op == Opcode::kEqz;
  return reads_condition && f_.args(*next)[0] == i.result;
}

// Marks the current place as a deopt target. No guard exits to the entry.
void BaselineCompiler::mark_entry(uint32_t point) {
  if (request_.enterable && point != 0) a_.mark_entry(point, held(current_));
}

// ---- Conditions -------------------------------------------------------------------------------

// Emits the instructions that set the flags for a condition (a waiting comparison or a test of v),
// uses its operands, and returns the condition to test.
BaselineCompiler::Condition BaselineCompiler::condition(Value v) {
  if (waiting_ == nullptr) return a_.compare_zero(Opcode::kNe, v);
  assert(v == waiting_result_);
  const Inst& comparison = *std::exchange(waiting_, nullptr);
  Condition c = compare(comparison);
  a_.values().use(v);
  return waiting_negated_ ? negate(c) : c;
}

BaselineCompiler::Condition BaselineCompiler::compare(const Inst& i) {
  using Binary = TargetAssembler::Binary;
  auto args = f_.args(i);
  switch (i.op) {
    case Opcode::kAddOverflows: return a_.overflow(Binary::kAdd, i.type, args[0], args[1]);
    case Opcode::kSubOverflows: return a_.overflow(Binary::kSub, i.type, args[0], args[1]);
    case Opcode::kMulOverflows: return a_.overflow(Binary::kMul, i.type, args[0], args[1]);
    case Opcode::kEqz: return a_.compare_zero(Opcode::kEq, args[0]);
    default: break;
  }
  return is_float(i.type) ? a_.compare_floats(i.op, i.type, args[0], args[1])
                          : a_.compare_ints(i.op, i.type, args[0], args[1]);
}

void BaselineCompiler::set_from_compare(const Inst& i) {
  if (waiting_ == nullptr) return a_.set(compare(i), i.result);
  Condition c = condition(f_.args(i)[0]);  // i is an eqz of the waiting comparison
  a_.set(negate(c), i.result);
}

void BaselineCompiler::select(const Inst& i) {
  Value c = f_.args(i)[0], when_set = f_.args(i)[1], otherwise = f_.args(i)[2];
  TargetAssembler::Selection s = a_.begin_select(i.type, when_set, otherwise);
  Condition test = condition(c);
  a_.end_select(s, test, i.type, i.result, when_set);
}

void BaselineCompiler::guard(const Inst& i) {
  auto args = f_.args(i);
  Condition c = condition(args[0]);
  if (i.imm == 0) return a_.trap_if(negate(c), TrapCode::kGuardFailed, i.loc);
  const Deopt& d = f_.deopts[i.imm - 1];
  a_.leave_unless(c,
                  {.exit = d.exit,
                   .point = d.frames[0].point,
                   .pc = d.frames[0].pc,
                   .reason = static_cast<GuardReason>(i.aux),
                   .loc = i.loc,
                   .in_loop = d.in_loop},
                  args.subspan(1), held(current_), request_.ask_to_leave);
}

// ---- Memory, calls ----------------------------------------------------------------------------

bool BaselineCompiler::is_frame_memory(Value v) const {
  if (frame_.memory == 0) return false;
  InstId id = f_.value(v).inst;
  return id.valid() && f_.inst(id).op == Opcode::kFrameMemory;
}

// Returns the access of a load or store whose address begins with operand `first`.
TargetAssembler::Access BaselineCompiler::access(const Inst& i, size_t first) const {
  auto args = f_.args(i);
  bool alone = args.size() == first + 1;
  return {.base = args[first],
          .index = alone ? Value::none() : args[first + 1],
          .offset = static_cast<uint32_t>(i.imm),
          .fuel = is_fuel(i),
          .in_frame = alone && is_frame_memory(args[first]),
          .traps = (i.flags & kMemTraps) != 0,
          .loc = i.loc};
}

void BaselineCompiler::call(const Inst& i) {
  using Kind = TargetAssembler::Call::Kind;
  auto args = f_.args(i);
  TargetAssembler::Call c{.kind = Kind::kMethod,
                          .signature = &f_.signature_of(i),
                          .args = args,
                          .result = i.result,
                          .type = i.type,
                          .loc = i.loc,
                          .call_site = i.site,
                          .may_trap = (i.flags & kCallMayTrap) != 0,
                          .returns_to_point = returns_to_point(i.op),
                          .held = held(current_)};
  if (i.op == Opcode::kCallIndirect) {
    c.kind = Kind::kIndirect;
    c.target = args[0];
    c.args = args.subspan(1);
    c.site = planned_site(f_, probes_, i);
  } else if (i.op == Opcode::kCallHost) {
    c.kind = Kind::kHost;
    c.address = f_.host_callees[i.imm].address;
  } else {
    c.method = f_.callees[i.imm].method;
  }
  a_.call(c);
}

// ---- Probes, loops, entries -------------------------------------------------------------------

void BaselineCompiler::probe(const Inst& i) {
  if (probe_kind(i) == ProbeKind::kBlock) {
    a_.begin_site(i.aux);
    if (instrumented_) a_.count(flow_.at_block(i.aux));
    return;
  }
  const ProbePlan::Site* s = planned_site(f_, probes_, i);
  if (s == nullptr) return;
  Value v = s->kind == ProbeKind::kHit ? Value::none() : f_.args(i)[0];
  a_.observe(*s, v, i.aux, probe_tag(i));
}

void BaselineCompiler::loop_header(const Inst& i) {
  if (instrumented_ || request_.loop_checks) {
    check_of_[current_.index()] = a_.loop_check(i.aux, held(current_)) + 1;
  }
  a_.mark_loop(i.aux);
  // After the check, so that a frame from optimized code makes progress before it is checked again.
  mark_entry(position_);
  loops_.count_iteration(LoopId(i.aux));
}

// A frame_state that guards exit to is a deopt target.
void BaselineCompiler::frame_state(const Inst& i) {
  bool is_target = next_state_ < states_.size() && &f_.inst(states_[next_state_].state) == &i;
  if (is_target) mark_entry(states_[next_state_++].point);
}

// ---- Ends of blocks ---------------------------------------------------------------------------

// Everything is in a register or a slot before the probes; they keep both.
void BaselineCompiler::emit_edge(const Edge& e) {
  loops_.cross(current_, e.to);
  a_.count(flow_.along(e));
  if (crosses_held(e)) held(e.to) ? a_.load_countdown() : a_.store_countdown();
  a_.move_to_slots(f_.list(e.args), f_.params(e.to));
}

// Ends the block along an edge: its code, then a jump unless the target follows.
void BaselineCompiler::go_to(const Edge& e) {
  emit_edge(e);
  if (!is_next(e.to)) jump_to(e.to);
}

void BaselineCompiler::jump_to(Block b) {
  uint32_t check = instrumented_ ? 0 : check_of_[b.index()];
  if (check == 0 || !a_.jump_past_check(check - 1)) a_.jump(label(b));
}

// Sets `target` to the target of a jump along `e`: the block itself, or a stub with the edge's
// code.
void BaselineCompiler::edge_or_stub(const Edge& e, std::vector<EdgeStub>& stubs, Label& target) {
  if (!has_code(e)) {
    target = label(e.to);
    return;
  }
  target = a_.new_label();
  stubs.push_back({target, &e});
}

void BaselineCompiler::jump(const Inst& i) {
  a_.values().flush();
  go_to(f_.edges_of(i)[0]);
}

void BaselineCompiler::branch(const Inst& i) {
  a_.values().flush();
  Condition c = condition(f_.args(i)[0]);
  const Edge* far = &f_.edges_of(i)[0];
  const Edge* near = &f_.edges_of(i)[1];
  // The jump goes along `far`. The jump skips the code of `near`. If both edges have code, `far`
  // has a stub after them, which may fall through into the next block.
  bool far_code = has_code(*far), near_code = has_code(*near);
  bool swap = far_code != near_code ? far_code : is_next(far_code ? near->to : far->to);
  if (swap) {
    std::swap(far, near);
    std::swap(far_code, near_code);
    c = negate(c);
  }
  if (!far_code) {
    a_.jump_if(c, label(far->to));
    return go_to(*near);
  }
  Label stub = a_.new_label();
  a_.jump_if(c, stub);
  emit_edge(*near);
  jump_to(near->to);
  a_.bind(stub);
  go_to(*far);
}

void BaselineCompiler::switch_on(const Inst& i) {
  constexpr size_t kChain = 4;  // the largest number of cases for which comparing is at least as
                                // short as the table
  a_.values().flush();
  auto edges = f_.edges_of(i);
  std::vector<EdgeStub> stubs;
  std::vector<Label> targets(edges.size());
  for (size_t n = 0; n < edges.size(); ++n) edge_or_stub(edges[n], stubs, targets[n]);
  Value index = f_.args(i)[0];
  if (edges.size() - 1 <= kChain) {
    a_.switch_chain(index, targets);
  } else {
    a_.switch_table(index, std::move(targets));
  }
  for (const EdgeStub& s : stubs) {
    a_.bind(s.at);
    emit_edge(*s.edge);
    jump_to(s.edge->to);
  }
}

void BaselineCompiler::return_value(const Inst& i) {
  if (i.args.size != 0) a_.set_result(f_.args(i)[0]);
  a_.count(flow_.at_return(current_));
  loops_.leave_all(current_);
  if (held(current_)) a_.store_countdown();
  a_.leave_frame();
}

// ---- Dispatch ---------------------------------------------------------------------------------

void BaselineCompiler::dispatch(const Inst& i) {
  using Binary = TargetAssembler::Binary;
  auto args = f_.args(i);
  auto binary = [&](Binary op) { a_.binary(op, i.type, i.result, args[0], args[1]); };
  auto checked = [&](Binary op) { a_.checked(op, i.type, i.result, args[0], args[1], i.loc); };
  switch (i.op) {
    case Opcode::kConst: return;
    // Nothing is known here, and a value that goes from here to other code must be 0.
    case Opcode::kKnownCount: return a_.zero(i.result);
    case Opcode::kAdd: return binary(Binary::kAdd);
    case Opcode::kSub: return binary(Binary::kSub);
    case Opcode::kMul: return binary(Binary::kMul);
    case Opcode::kAnd: return binary(Binary::kAnd);
    case Opcode::kOr: return binary(Binary::kOr);
    case Opcode::kXor: return binary(Binary::kXor);
    case Opcode::kAddTrap: return checked(Binary::kAdd);
    case Opcode::kSubTrap: return checked(Binary::kSub);
    case Opcode::kMulTrap: return checked(Binary::kMul);
    case Opcode::kMulHighS:
    case Opcode::kMulHighU: return a_.multiply_high(i.op, i.type, i.result, args[0], args[1]);
    case Opcode::kDivS:
    case Opcode::kDivU:
    case Opcode::kRemS:
    case Opcode::kRemU: return a_.divide(i.op, i.type, i.result, args[0], args[1], i.loc);
    case Opcode::kShl:
    case Opcode::kShrS:
    case Opcode::kShrU:
    case Opcode::kRotl:
    case Opcode::kRotr: return a_.shift(i.op, i.type, i.result, args[0], args[1]);
    case Opcode::kClz:
    case Opcode::kCtz:
    case Opcode::kPopcnt: return a_.bit_count(i.op, i.type, i.result, args[0]);
    case Opcode::kSext8:
    case Opcode::kSext16:
    case Opcode::kSext32: return a_.sign_extend(i.op, i.type, i.result, args[0]);
    case Opcode::kFAdd:
    case Opcode::kFSub:
    case Opcode::kFMul:
    case Opcode::kFDiv:
    case Opcode::kFMin:
    case Opcode::kFMax:
    case Opcode::kFCopysign: return a_.float_binary(i.op, i.type, i.result, args[0], args[1]);
    case Opcode::kFAbs:
    case Opcode::kFNeg:
    case Opcode::kFSqrt:
    case Opcode::kFCeil:
    case Opcode::kFFloor:
    case Opcode::kFTrunc:
    case Opcode::kFNearest: return a_.float_unary(i.op, i.type, i.result, args[0]);
    case Opcode::kWrap:
    case Opcode::kExtendS:
    case Opcode::kExtendU: return a_.extend(i.op, i.result, args[0]);
    case Opcode::kTruncS:
    case Opcode::kTruncU:
    case Opcode::kTruncSatS:
    case Opcode::kTruncSatU: return a_.truncate(i.op, i.type, i.result, args[0], i.loc);
    case Opcode::kConvertS:
    case Opcode::kConvertU: return a_.convert_int(i.op, i.type, i.result, args[0]);
    case Opcode::kPromote:
    case Opcode::kDemote: return a_.convert_width(i.op, i.result, args[0]);
    case Opcode::kBitcast: return a_.bitcast(i.type, i.result, args[0]);
    default: return other(i);
  }
}

void BaselineCompiler::other(const Inst& i) {
  switch (i.op) {
    case Opcode::kSelect: return select(i);
    case Opcode::kJump: return jump(i);
    case Opcode::kBranch: return branch(i);
    case Opcode::kSwitch: return switch_on(i);
    case Opcode::kReturn: return return_value(i);
    case Opcode::kTrap: return a_.trap(static_cast<TrapCode>(i.aux), i.loc);
    case Opcode::kTrapIf: {
      Condition c = condition(f_.args(i)[0]);
      return a_.trap_if(c, static_cast<TrapCode>(i.aux), i.loc);
    }
    case Opcode::kLoopHeader: return loop_header(i);
    case Opcode::kProbe: return probe(i);
    case Opcode::kFrameState: return frame_state(i);
    case Opcode::kGuard: return guard(i);
    case Opcode::kFill:
    case Opcode::kCopy: {
      auto args = f_.args(i);
      return a_.bulk(i.op, args[0], args[1], args[2], static_cast<uint32_t>(i.imm),
                     (i.flags & kMemTraps) != 0, i.loc);
    }
    case Opcode::kFrameMemory: return a_.frame_memory(i.result, i.imm);
    default: break;
  }
  switch (info(i.op).shape) {
    case Shape::kLoad: return a_.load(i.op, i.type, i.result, access(i, 0));
    case Shape::kStore: return a_.store(i.op, i.type, f_.args(i)[0], access(i, 1));
    case Shape::kCompare:
    case Shape::kTest: return set_from_compare(i);
    default: return call(i);
  }
}

}  // namespace uptier::jit::baseline
