#include "jit/x64/baseline_assembler.h"

#include <algorithm>

#include "jit/x64/call_layout.h"
#include "sampler/context.h"

namespace uptier::jit::x64 {

BaselineAssembler::BaselineAssembler(const Input& in)
    : in_(in),
      probes_(in.instrumented ? in.plan : nullptr),
      b_(in.space),
      a_(b_.assembler()),
      values_(b_, in.frame, in.holds_countdown ? 1u << kCountdown.id() : 0),
      readers_(in.frame.size / 8 + 1),
      writer_(in.frame.size / 8 + 1, UINT32_MAX) {
  if (in.records) b_.note_refs(in.method);
  if (!in.block_rows) b_.omit_block_rows();
  b_.begin_body();
  std::fill(std::begin(source_), std::end(source_), int8_t{-1});
}

void BaselineAssembler::prologue() {
  self_ = b_.new_label();
  b_.bind(self_);
  using Kind = FrameState::Kind;
  // After a landing pad the frame is made later than usual, so rows describe it.
  bool pad = b_.has_landing_pads();
  if (pad) b_.frame_row({Kind::kNone});
  b_.landing_pad();
  a_.push(x86::rbp);
  if (pad) b_.frame_row({Kind::kPushed});
  a_.mov(x86::rbp, x86::rsp);
  if (pad) b_.frame_row({Kind::kMade});
  a_.sub(x86::rsp, imm(INT32_MAX));  // the form with a four-byte immediate, patched by finish()
  frame_patch_ = b_.offset() - 4;
  if (in_.check_stack) check_stack();
}

void BaselineAssembler::check_stack() {
  b_.load_context(kScratch);
  a_.cmp(x86::rsp, x86::qword_ptr(kScratch, sampler::kStackLimitOffset));
  a_.jb(b_.trap_label(TrapCode::kStackExhausted, 0));
}

// Register arguments stay in their registers; stack arguments move to their slots.
void BaselineAssembler::take_parameters(std::span<const Value> params) {
  ArgCursor cursor;
  constexpr int32_t kFirstStackArgument = 16;  // above rbp and the return address
  for (Value p : params) {
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

void BaselineAssembler::finish(uint32_t call_points) {
  emit_probe_slow();
  emit_loop_slow();
  emit_counter_slow();
  emit_entries(call_points);
  emit_exits();
  emit_tables();
  frame_size_ = (values_.frame_bytes() + 8 * outgoing_words_ + 15) & ~15u;
  b_.patch32(frame_patch_, frame_size_);
  for (uint32_t at : arrive_patches_) b_.patch32(at, 0 - frame_size_);
}

Result<std::unique_ptr<Code>> BaselineAssembler::publish() {
  b_.tables().frame_size = frame_size_;
  // Code that a failing guard continues in may exceed the budget: without it, the guard could not
  // leave.
  return b_.publish(in_.space, 0, in_.method, in_.enterable);
}

Result<RecordedCode> BaselineAssembler::record() {
  b_.tables().frame_size = frame_size_;
  return b_.record(0);
}

}  // namespace uptier::jit::x64
