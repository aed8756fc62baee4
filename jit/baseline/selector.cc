#include "jit/baseline/selector.h"

#include <algorithm>
#include <cassert>

#include "jit/ir/turns.h"
#include "sampler/context.h"

namespace uptier::jit::baseline {

Selector::Selector(const Input& in)
    : in_(in.compile),
      request_(in.request),
      frame_(in.frame),
      f_(in.function),
      b_(in.compile.space),
      a_(b_.assembler()),
      instrumented_(in.request.copy == Copy::kInstrumented),
      probes_(instrumented_ ? in.request.probes : nullptr),
      held_(instrumented_ || in.request.loop_checks ? find_held(f_) : std::vector<bool>()),
      values_(b_, f_, in.frame, in.live, probes_, held_.empty() ? 0 : 1u << kCountdown.id()),
      check_stack_(in.check_stack),
      labels_(f_.blocks.size()),
      predecessors_(f_.blocks.size()),
      check_of_(f_.blocks.size()),
      readers_(in.frame.size / 8 + 1),
      writer_(in.frame.size / 8 + 1, UINT32_MAX) {
  b_.begin_body();
  std::fill(std::begin(source_), std::end(source_), int8_t{-1});
  for (Block b : f_.layout) {
    for (const Edge& e : f_.successors(b)) ++predecessors_[e.to.index()];
  }
  b_.tables().loops.resize(f_.loop_count);
  plan_flow();
  if (probes_ != nullptr && !probes_->loops.empty()) forest_ = find_loop_forest(f_);
  if (request_.enterable) states_ = state_points(in.compile.function, in.live);
}

void Selector::run() {
  self_ = b_.new_label();
  b_.bind(self_);
  prologue();
  for (size_t i = 0; i < f_.layout.size(); ++i) block(i);
  finish();
}

Result<std::unique_ptr<Code>> Selector::publish() {
  b_.tables().frame_size = frame_size_;
  // What a failing guard needs to go on is not refused for want of room.
  return b_.publish(in_.space, 0, in_.method, request_.enterable);
}

// ---- Entry ------------------------------------------------------------------------------------

void Selector::prologue() {
  using Kind = FrameState::Kind;
  bool pad = b_.has_landing_pads();  // the frame is not made where it usually is
  if (pad) b_.frame_row({Kind::kNone});
  b_.landing_pad();
  a_.push(x86::rbp);
  if (pad) b_.frame_row({Kind::kPushed});
  a_.mov(x86::rbp, x86::rsp);
  if (pad) b_.frame_row({Kind::kMade});
  a_.sub(x86::rsp, imm(INT32_MAX));  // the form with four bytes, patched by finish()
  frame_patch_ = b_.offset() - 4;
  if (check_stack_) check_stack();
  if (!instrumented_) return;
  load_slab();
  count_entry();
  enter_loop(function_loop());
}

void Selector::check_stack() {
  b_.load_context(kScratch);
  a_.cmp(x86::rsp, x86::qword_ptr(kScratch, sampler::kStackLimitOffset));
  a_.jb(b_.trap_label(TrapCode::kStackExhausted, 0));
}

// Registers stay where the caller put them; stack arguments move to their slots.
void Selector::place_arguments() {
  ArgCursor cursor;
  constexpr int32_t kFirstStackArgument = 16;  // above rbp and the return address
  for (Value p : f_.params(f_.entry())) {
    ArgPlace place = cursor.next(values_.type_of(p));
    if (values_.is_dead(p)) continue;
    switch (place.kind) {
      case ArgPlace::Kind::kGp: values_.enter(p, kGpArgs[place.index]); break;
      case ArgPlace::Kind::kXmm: values_.enter(p, 16 + place.index); break;
      case ArgPlace::Kind::kStack:
        move_slot(kFirstStackArgument + 8 * static_cast<int32_t>(place.index), values_.home(p),
                  is_wide(values_.type_of(p)));
        break;
    }
  }
}

// ---- Blocks -----------------------------------------------------------------------------------

void Selector::block(size_t position) {
  Block b = f_.layout[position];
  current_ = b;
  position_ = static_cast<uint32_t>(position);
  begin_ranges(b);
  next_ = position + 1 < f_.layout.size() ? f_.layout[position + 1] : Block::none();
  bool keep = false;
  bool is_header = f_.inst(f_.block(b).insts[0]).op == Opcode::kLoopHeader;
  if (position != 0) {
    auto before = f_.successors(f_.layout[position - 1]);
    bool follows =
        std::any_of(before.begin(), before.end(), [&](const Edge& e) { return e.to == b; });
    keep = follows && predecessors_[b.index()] == 1 && !is_header;
  }
  if (!keep || labels_[b.index()].isValid()) b_.bind(label(b));
  values_.begin_block(b, keep);
  if (position == 0) place_arguments();
  if (!is_header) mark_entry(position_);
  const auto& insts = f_.block(b).insts;
  for (size_t i = 0; i < insts.size(); ++i) {
    if (counts_nothing(f_.inst(insts[i]))) continue;
    size_t behind = i + 1;
    while (behind < insts.size() && counts_nothing(f_.inst(insts[behind]))) ++behind;
    const Inst* next = behind < insts.size() ? &f_.inst(insts[behind]) : nullptr;
    instruction(f_.inst(insts[i]), next);
  }
  values_.end_block(b);
  extend_ranges(b);
}

void Selector::instruction(const Inst& i, const Inst* next) {
  if (skip_dead(i)) return;
  if (can_wait(i, next)) {
    bool negates = waiting_ != nullptr;  // eqz of a comparison that waits already
    if (negates) {
      values_.use(waiting_result_);
    } else {
      waiting_ = &i;
    }
    waiting_negated_ = negates ? !waiting_negated_ : false;
    waiting_result_ = i.result;
    return;
  }
  dispatch(i);
  values_.end_instruction();
}

// Leaves out what has no effect and no use; its operands are used up all the same.
bool Selector::skip_dead(const Inst& i) {
  constexpr uint8_t kMatters = kCanTrap | kWrites | kEndsBlock | kPinned;
  if (waiting_ != nullptr) return false;  // i has to take it
  if (!i.result.valid() || (info(i.op).effects & kMatters) != 0) return false;
  if (!values_.is_dead(i.result) && i.op != Opcode::kConst) return false;
  for (Value v : f_.args(i)) values_.use(v);
  return true;
}

namespace {

bool sets_flags(Opcode op) {
  Shape s = info(op).shape;
  return s == Shape::kCompare || s == Shape::kTest;
}

}  // namespace

// Whether it is a probe that this copy leaves out, which may stand between a comparison and its branch.
bool Selector::counts_nothing(const Inst& i) const {
  return counts_turns(i) && planned_site(f_, probes_, i) == nullptr;
}

bool Selector::can_wait(const Inst& i, const Inst* next) const {
  if (next == nullptr || !sets_flags(i.op)) return false;
  if (values_.uses(i.result) != 1 || values_.crosses(i.result)) return false;
  // What waits already was promised to this instruction.
  if (waiting_ != nullptr && i.op != Opcode::kEqz) return false;
  bool reads_condition = next->op == Opcode::kBranch || next->op == Opcode::kTrapIf ||
                         next->op == Opcode::kGuard || next->op == Opcode::kSelect ||
                         next->op == Opcode::kEqz;
  return reads_condition && f_.args(*next)[0] == i.result;
}

// ---- End --------------------------------------------------------------------------------------

void Selector::finish() {
  emit_probe_slow();
  emit_loop_slow();
  emit_counter_slow();
  emit_entries();
  emit_exits();
  emit_tables();
  frame_size_ = (values_.frame_bytes() + 8 * outgoing_words_ + 15) & ~15u;
  b_.patch32(frame_patch_, frame_size_);
  for (uint32_t at : arrive_patches_) b_.patch32(at, 0 - frame_size_);
}

// A table holds distances from its own start, so it needs no relocation.
void Selector::emit_tables() {
  for (const JumpTable& t : tables_) {
    a_.align(asmjit::AlignMode::kData, 4);
    b_.bind(t.at);
    auto start = static_cast<int32_t>(b_.offset());
    for (const Label& l : t.targets) {
      int32_t distance = static_cast<int32_t>(b_.offset_of(l)) - start;
      a_.embed(&distance, sizeof distance);
    }
  }
}

// ---- Dispatch ---------------------------------------------------------------------------------

void Selector::dispatch(const Inst& i) {
  switch (i.op) {
    case Opcode::kConst: return;
    case Opcode::kKnownCount: return known_count(i);
    case Opcode::kAdd: return binary(i, Binary::kAdd);
    case Opcode::kSub: return binary(i, Binary::kSub);
    case Opcode::kMul: return binary(i, Binary::kMul);
    case Opcode::kAnd: return binary(i, Binary::kAnd);
    case Opcode::kOr: return binary(i, Binary::kOr);
    case Opcode::kXor: return binary(i, Binary::kXor);
    case Opcode::kMulHighS:
    case Opcode::kMulHighU: return multiply_high(i);
    case Opcode::kDivS:
    case Opcode::kDivU:
    case Opcode::kRemS:
    case Opcode::kRemU: return divide(i);
    case Opcode::kShl:
    case Opcode::kShrS:
    case Opcode::kShrU:
    case Opcode::kRotl:
    case Opcode::kRotr: return shift(i);
    case Opcode::kClz:
    case Opcode::kCtz:
    case Opcode::kPopcnt: return bit_count(i);
    case Opcode::kSext8:
    case Opcode::kSext16:
    case Opcode::kSext32: return sign_extend(i);
    case Opcode::kAddTrap:
    case Opcode::kSubTrap:
    case Opcode::kMulTrap: return overflow_trap(i);
    case Opcode::kFAdd:
    case Opcode::kFSub:
    case Opcode::kFMul:
    case Opcode::kFDiv:
    case Opcode::kFMin:
    case Opcode::kFMax:
    case Opcode::kFCopysign: return float_binary(i);
    case Opcode::kFAbs:
    case Opcode::kFNeg:
    case Opcode::kFSqrt:
    case Opcode::kFCeil:
    case Opcode::kFFloor:
    case Opcode::kFTrunc:
    case Opcode::kFNearest: return float_unary(i);
    case Opcode::kWrap:
    case Opcode::kExtendS:
    case Opcode::kExtendU: return extend(i);
    case Opcode::kTruncS:
    case Opcode::kTruncU:
    case Opcode::kTruncSatS:
    case Opcode::kTruncSatU: return truncate(i);
    case Opcode::kConvertS:
    case Opcode::kConvertU: return convert_int(i);
    case Opcode::kPromote:
    case Opcode::kDemote: return convert_width(i);
    case Opcode::kBitcast: return bitcast(i);
    case Opcode::kSelect: return select(i);
    case Opcode::kJump: return jump(i);
    case Opcode::kBranch: return branch(i);
    case Opcode::kSwitch: return switch_on(i);
    case Opcode::kReturn: return return_value(i);
    case Opcode::kTrap: return b_.trap_now(static_cast<TrapCode>(i.aux), i.loc);
    case Opcode::kTrapIf: return trap_if(i);
    case Opcode::kLoopHeader: return loop_header(i);
    case Opcode::kProbe: return probe(i);
    case Opcode::kFrameState: return frame_state(i);
    case Opcode::kGuard: return guard(i);
    case Opcode::kFill:
    case Opcode::kCopy: return bulk(i);
    case Opcode::kFrameMemory: return frame_memory(i);
    default: break;
  }
  switch (info(i.op).shape) {
    case Shape::kLoad: return load(i);
    case Shape::kStore: return store(i);
    case Shape::kCompare:
    case Shape::kTest: return set_from_compare(i);
    default: return call(i);
  }
}

}  // namespace uptier::jit::baseline
