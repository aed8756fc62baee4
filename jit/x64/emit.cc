#include "jit/x64/emit.h"

#include <algorithm>

#include "jit/x64/call_layout.h"
#include "jit/x64/emit_impl.h"
#include "jit/x64/macros.h"
#include "sampler/context.h"

namespace uptier::jit::x64 {
namespace {

// A leaf with a small frame may use the stack that the limit keeps free for host functions.
constexpr uint32_t kSmallFrame = 1024;
// The stack check is made after the frame was taken, below the limit.
constexpr uint32_t kLargestFrame = 1u << 20;
constexpr Reg kSavable[] = {kRbx, kR12, kR13, kR14, kR15};

}  // namespace

bool has_bmi2() { return asmjit::CpuInfo::host().features().x86().hasBMI2(); }

Emitter::Emitter(const EmitInput& in)
    : in_(in), m_(in.machine), b_(in.compile.space), a_(b_.assembler()) {
  avx_ = asmjit::CpuInfo::host().features().x86().hasAVX();
  bmi2_ = has_bmi2();
  if (!in.block_rows) b_.omit_block_rows();
  b_.begin_body();
  a_.addEncodingOptions(asmjit::EncodingOptions::kOptimizedAlign);
}

Result<std::unique_ptr<Code>> Emitter::run() {
  lay_out_frame();
  if (frame_ > kLargestFrame) {
    return Error{ErrorCode::kUnsupported, in_.function.name + ": the frame exceeds 1 MiB"};
  }
  plan_ = kept_.empty() ? plan_frame(m_, in_.allocation) : frame_from_start(m_);
  for (size_t b = 0; b < m_.blocks.size(); ++b) labels_.push_back(b_.new_label());
  find_empty_blocks();
  thread_jumps();
  find_dispatches();
  find_room_for_tails();
  entry_ = b_.new_label();
  b_.bind(entry_);
  if (b_.has_landing_pads()) frame_is(in_.osr ? FrameState::Kind::kMade : FrameState::Kind::kNone);
  b_.landing_pad();
  if (!plan_.bare[0]) make_frame();
  first_cold_ = static_cast<uint32_t>(m_.blocks.size());
  while (first_cold_ > 1 && m_.blocks[first_cold_ - 1].cold) --first_cold_;
  for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
    if (b == first_cold_) b_.begin_cold();
    emit_block(b);
  }
  emit_probes(UINT32_MAX);
  b_.begin_cold();
  if (!plan_.all_bare()) frame_is_made();
  exits();
  if (!m_.origins.empty()) b_.first_line_row({});
  probe_calls();
  due_calls();
  for (const InlinedBody& i : in_.function.inlined) {
    b_.tables().inlined.push_back({i.parent, i.site, i.method, i.loc});
  }
  if (in_.inlined_counts != nullptr) b_.tables().inlined_counts = *in_.inlined_counts;
  if (in_.inlined_probes != nullptr) b_.tables().inlined_probes = *in_.inlined_probes;
  if (in_.tallies != nullptr) b_.tables().tallies = *in_.tallies;
  b_.tables().frame_size = frame_ + 8 * static_cast<uint32_t>(saved_.size());
  b_.tables().baseline_frame = in_.osr ? in_.baseline_frame : 0;
  return b_.publish(in_.compile.space, 0, in_.compile.method);
}

// ---- The frame --------------------------------------------------------------------------------

void Emitter::lay_out_frame() {
  find_kept();
  for (Reg r : kSavable) {
    if (in_.allocation.used & mask_of(r)) saved_.push_back(r);
  }
  auto kept = static_cast<uint32_t>(kept_.size());
  uint32_t bytes = 8 * (in_.allocation.slots + kept + m_.outgoing_words);
  uint32_t saved = 8 * static_cast<uint32_t>(saved_.size());
  // rbp is 16-byte aligned, and so is rsp at calls.
  bool aligned = m_.has_calls || in_.osr;
  frame_ = aligned ? ((bytes + saved + 15) & ~15u) - saved : bytes;
}

// A body without calls and exits keeps nothing: nobody scans its stack.
void Emitter::find_kept() {
  if (in_.params.empty() || (!m_.has_calls && m_.exits.empty())) return;
  const Signature& s = in_.function.signature();
  ArgCursor places;
  for (uint32_t k = 0; k < s.params.size(); ++k) {
    ArgPlace p = places.next(s.params[k]);
    bool known = std::ranges::find(in_.params, k, &ParamValue::param) != in_.params.end();
    bool word = p.kind == ArgPlace::Kind::kGp && is_wide(s.params[k]);
    if (known && word) kept_.push_back(static_cast<Reg>(kGpArgs[p.index]));
  }
}

void Emitter::frame_is(FrameState::Kind kind, size_t saved) {
  b_.frame_row({kind, static_cast<uint8_t>(saved)});
}

void Emitter::make_frame() {
  using Kind = FrameState::Kind;
  auto below = static_cast<int32_t>(in_.baseline_frame);
  if (in_.osr) {
    frame_is(Kind::kMade);
    auto saved = static_cast<int32_t>(8 * saved_.size());
    a_.lea(x86::rsp, x86::ptr(x86::rbp, -below - saved - static_cast<int32_t>(frame_)));
    for (size_t n = 0; n < saved_.size(); ++n) {
      a_.mov(x86::ptr(x86::rbp, -below - 8 * static_cast<int32_t>(n + 1)), x86::gpq(saved_[n]));
    }
    frame_is_made();
  } else {
    frame_is(Kind::kNone);
    a_.push(x86::rbp);
    frame_is(Kind::kPushed);
    a_.mov(x86::rbp, x86::rsp);
    frame_is(Kind::kMade);
    for (size_t n = 0; n < saved_.size(); ++n) {
      a_.push(x86::gpq(saved_[n]));
      frame_is(Kind::kMade, n + 1);
    }
    if (frame_ != 0) a_.sub(x86::rsp, imm(frame_));
  }
  if (m_.has_calls || frame_ > kSmallFrame) {
    b_.load_context(x86::r11);
    a_.cmp(x86::rsp, x86::qword_ptr(x86::r11, sampler::kStackLimitOffset));
    a_.jb(b_.trap_label(TrapCode::kStackExhausted, 0));
  }
  uint32_t at = in_.allocation.slots;
  for (Reg r : kept_) a_.mov(slot(at++, 8), x86::gpq(r));
}

void Emitter::epilogue() {
  if (plan_.bare[now_]) {
    a_.ret();
    return;
  }
  if (in_.osr) {
    auto below = static_cast<int32_t>(in_.baseline_frame);
    for (size_t n = 0; n < saved_.size(); ++n) {
      a_.mov(x86::gpq(saved_[n]), x86::ptr(x86::rbp, -below - 8 * static_cast<int32_t>(n + 1)));
    }
    a_.mov(x86::rsp, x86::rbp);
  } else {
    if (frame_ != 0) a_.add(x86::rsp, imm(frame_));
    for (size_t n = saved_.size(); n-- > 0;) {
      a_.pop(x86::gpq(saved_[n]));
      frame_is(FrameState::Kind::kMade, n);
    }
  }
  a_.pop(x86::rbp);
  frame_is(FrameState::Kind::kNone);
  a_.ret();
}

// ---- Blocks -----------------------------------------------------------------------------------

void Emitter::find_empty_blocks() {
  empty_.assign(m_.blocks.size(), true);
  auto only_jumps = [&](const MInst& i) { return i.op == MOp::kLabel || i.op == MOp::kJump; };
  for (size_t b = 0; b < m_.blocks.size(); ++b) {
    for (uint32_t n = m_.blocks[b].begin; n < m_.blocks[b].end && empty_[b]; ++n) {
      empty_[b] = only_jumps(m_.insts[n]);
    }
  }
  uint32_t b = 0;
  for (const Move& m : in_.allocation.moves) {
    while (m.gap >= m_.blocks[b].end) ++b;
    empty_[b] = false;
  }
  for (b = 0; b < m_.blocks.size(); ++b) {
    if (plan_.makes[b] != FramePlan::Makes::kNot) empty_[b] = false;
  }
}

// Finds the final target of jumps to empty blocks. A cycle of empty blocks keeps its jumps.
void Emitter::thread_jumps() {
  auto count = static_cast<uint32_t>(m_.blocks.size());
  target_.assign(count, count);
  std::vector<uint32_t> chain;
  for (uint32_t first = 0; first < count; ++first) {
    uint32_t b = first;
    chain.clear();
    while (target_[b] == count && empty_[b]) {
      target_[b] = b;  // ends the walk if a cycle comes back here
      chain.push_back(b);
      b = m_.edges_of(m_.terminator(m_.blocks[b]))[0].to;
    }
    if (target_[b] == count) target_[b] = b;
    uint32_t to = target_[b];
    if (empty_[to]) continue;
    for (uint32_t c : chain) target_[c] = to;
  }
}

void Emitter::emit_block(uint32_t b) {
  const MBlock& block = m_.blocks[b];
  if (target_[b] != b) return;
  now_ = b;
  next_ = b + 1;
  while (next_ < m_.blocks.size() && target_[next_] != next_) ++next_;
  // Nothing directly follows the last block of the hot part.
  if (b < first_cold_ && next_ >= first_cold_ && b_.has_cold_part()) next_ = UINT32_MAX;
  if (block.align) a_.align(asmjit::AlignMode::kCode, 16);
  b_.bind(labels_[b]);
  plan_.bare[b] ? frame_is(FrameState::Kind::kNone) : frame_is_made();
  if (plan_.makes[b] == FramePlan::Makes::kAtStart) make_frame();
  flags_ = {};  // jumps to here arrive with other flags
  emit_insts(b);
}

void Emitter::emit_insts(uint32_t b) {
  const MBlock& block = m_.blocks[b];
  if (!m_.origins.empty()) begin_line(block);
  for (uint32_t n = block.begin; n < block.end; ++n) {
    if (n + 1 == block.end && plan_.makes[b] == FramePlan::Makes::kAtEnd) make_frame();
    emit_probes(n);
    if (!m_.origins.empty()) b_.line_row(m_.origins[n]);
    emit_gap(n);
    emit_inst(m_.insts[n]);
  }
  // What follows is another block, which may also be reached by jumps.
  b_.end_rows();
}

// A block may be reached from anywhere, so that nothing is known from the code before it.
void Emitter::begin_line(const MBlock& b) {
  uint32_t n = b.begin;
  while (n + 1 < b.end && m_.origins[n].loc == 0) ++n;
  b_.first_line_row(m_.origins[n]);
}

// Emits the rows up to instruction n. Blocks that were not emitted lose theirs.
void Emitter::emit_probes(uint32_t n) {
  while (probe_ < m_.probes.size() && m_.probes[probe_].inst <= n) {
    const MProbe& p = m_.probes[probe_++];
    bool merged = p.kind == MProbe::Kind::kMerged, starts = p.kind == MProbe::Kind::kStarts;
    if (p.inst == n && !merged) {
      b_.probe_row(p.site, p.body, starts);
    } else if (merged || starts) {
      b_.lose_row(p.site, p.body);
    }
  }
}

// ---- Instructions -----------------------------------------------------------------------------

void Emitter::emit_inst(const MInst& i) {
  switch (i.op) {
    case MOp::kAlu: return alu(i);
    case MOp::kAluTrap:
    case MOp::kAluOverflow: return alu_checked(i);
    case MOp::kMulImm: return mul_imm(i);
    case MOp::kShiftImm: return shift_imm(i);
    case MOp::kShiftVar: return shift_var(i);
    case MOp::kLea: return lea(i);
    case MOp::kExtend: return extend(i);
    case MOp::kLoad: return load(i);
    case MOp::kStore: {
      // The store of the fuel comes between its decrement and the test of its sign, and keeps the
      // flags.
      bool kept = i.base == kNoOperand && i.form == Form::kMR && flags_.offset == b_.offset();
      store(i);
      if (kept) flags_.offset = b_.offset();
      return;
    }
    case MOp::kAluStore: return alu_store(i);
    case MOp::kDiv: return divide(i);
    case MOp::kBulk: claim(i); return emit_bulk(b_, static_cast<Opcode>(i.sub), i.width);
    case MOp::kMulHigh: return mul_high(i);
    case MOp::kFAlu: return float_alu(i);
    case MOp::kFUnary: return float_unary(i);
    case MOp::kFSign: return float_sign(i);
    case MOp::kConvert: return convert(i);
    case MOp::kSet: return set(i);
    case MOp::kSelect: return select(i);
    case MOp::kTrapIf: return trap_if(i);
    case MOp::kBranch: return branch(i);
    case MOp::kSwitch: return switch_on(i);
    case MOp::kCall:
    case MOp::kCallIndirect:
    case MOp::kCallHost: return call(i);
    default: return emit_simple(i);
  }
}

void Emitter::emit_simple(const MInst& i) {
  switch (i.op) {
    case MOp::kJump: return go_to(m_.edges_of(i)[0].to, part_ * m_.blocks[now_].frequency);
    case MOp::kReturn: return epilogue();
    case MOp::kLeave: return leave(i);
    case MOp::kLoadSlab: return load_slab(gp_at(i, i.d));
    case MOp::kCount: return count(i);
    case MOp::kTally: return tally(i);
    case MOp::kObserve: return observe(i);
    case MOp::kTrap: return b_.trap_now(i.trap, i.loc);
    case MOp::kMov: return move(at(i, i.a), at(i, i.d));
    case MOp::kConst:
    case MOp::kFConst: return load_constant(at(i, i.d), i.imm);
    case MOp::kLoadFrame: {
      Mem from = x86::ptr(x86::rbp, i.disp, i.width);
      Location d = at(i, i.d);
      if (class_of(d.index()) == RegClass::kFloat) {
        i.width == 8 ? a_.movsd(xmm_at(i, i.d), from) : a_.movss(xmm_at(i, i.d), from);
      } else {
        a_.mov(gp(gp_at(i, i.d), i.width == 8), from);
      }
      return;
    }
    case MOp::kNeg:
    case MOp::kNot: {
      Gp d = gp(gp_at(i, i.d), i.width == 8);
      copy(d, i, i.a, i.width);
      i.op == MOp::kNeg ? a_.neg(d) : a_.not_(d);
      return;
    }
    case MOp::kBits: {
      auto op = static_cast<Opcode>(i.sub);
      return emit_bit_count(b_, op, i.width == 8, gp_at(i, i.d), gp_at(i, i.a), x86::r11);
    }
    case MOp::kFLoad: {
      claim(i);
      Mem from = memory(i, i.width);
      i.width == 8 ? a_.movsd(xmm_at(i, i.d), from) : a_.movss(xmm_at(i, i.d), from);
      return;
    }
    case MOp::kFStore: {
      claim(i);
      Mem to = memory(i, i.width);
      i.width == 8 ? a_.movsd(to, xmm_at(i, i.a)) : a_.movss(to, xmm_at(i, i.a));
      return;
    }
    default: return;  // kLabel, kEntry: nothing
  }
}

Result<std::unique_ptr<Code>> emit(const EmitInput& in) { return Emitter(in).run(); }

}  // namespace uptier::jit::x64
