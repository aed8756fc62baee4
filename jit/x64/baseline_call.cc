// Calls. The callee may change every register, so all live values are stored to their homes first.
#include "jit/x64/baseline_assembler.h"

#include "jit/x64/call_layout.h"
#include "sampler/context.h"

namespace uptier::jit::x64 {
namespace {

constexpr unsigned kTargetRegister = Gp::kIdAx;  // of indirect calls; carries no argument

}  // namespace

void BaselineAssembler::call(const Call& c) {
  bool indirect = c.kind == Call::Kind::kIndirect;
  if (indirect) values_.use_later(c.target);
  for (Value v : c.args) values_.use_later(v);
  values_.save_all();
  arg_moves_.clear();
  if (indirect) arg_moves_.push_back({c.target, kTargetRegister});
  pass_arguments(c.args, *c.signature);
  load_arguments(arg_moves_);
  if (indirect) values_.settle(c.target);
  for (Value v : c.args) values_.settle(v);
  if (c.held) store_countdown();
  emit_call(c);
  if (c.held) load_countdown();
  values_.forget_all();
  take_result(c);
}

// Stores the stack arguments, and lists those for registers in arg_moves_.
void BaselineAssembler::pass_arguments(std::span<const Value> args, const Signature& s) {
  ArgCursor cursor;
  for (size_t n = 0; n < args.size(); ++n) {
    ArgPlace place = cursor.next(s.params[n]);
    switch (place.kind) {
      case ArgPlace::Kind::kGp: arg_moves_.push_back({args[n], kGpArgs[place.index]}); break;
      case ArgPlace::Kind::kXmm:
        arg_moves_.push_back({args[n], static_cast<uint8_t>(16 + place.index)});
        break;
      case ArgPlace::Kind::kStack:
        store_value(args[n], x86::ptr(x86::rsp, 8 * static_cast<int32_t>(place.index),
                                      is_wide(s.params[n]) ? 8 : 4));
        break;
    }
  }
  if (cursor.stack_words() > outgoing_words_) outgoing_words_ = cursor.stack_words();
}

// A frame that deoptimization makes for the caller returns to this address too, so the code after
// the call checks for a pending trap.
void BaselineAssembler::emit_call(const Call& c) {
  uint32_t bytes = emit_call_alone(c);
  b_.call_row(c.loc, c.call_site, bytes);
  if (in_.enterable && c.returns_to_point) returns_.push_back(b_.offset());
  if (!c.may_trap) return;
  b_.load_context(kScratch);
  a_.cmp(x86::dword_ptr(kScratch, sampler::kPendingTrapOffset), imm(0));
  b_.jump_address_if(x86::CondCode::kNE, in_.helpers.trap_exit);
}

// Returns the length of the call instruction.
uint32_t BaselineAssembler::emit_call_alone(const Call& c) {
  if (c.kind == Call::Kind::kIndirect) {
    if (c.site != nullptr) count_in_table(*c.site, x86::gpq(kTargetRegister));
    return b_.call_register(x86::gpq(kTargetRegister));
  }
  if (c.kind == Call::Kind::kHost) return b_.call_address(c.address);
  CallTarget target = in_.calls.target(c.method);
  switch (target.kind) {
    case CallTarget::Kind::kStub: return b_.call_address(target.address);
    case CallTarget::Kind::kCell: return b_.call_cell(target.address);
    case CallTarget::Kind::kSelf: return b_.call_label(self_);
    case CallTarget::Kind::kCounted: return b_.call_address(target.stub);
  }
  return 0;
}

void BaselineAssembler::take_result(const Call& c) {
  if (!c.result.valid()) return;
  if (is_float(c.type)) {
    values_.define(c.result, x86::xmm0);
  } else {
    values_.define(c.result, x86::rax, false);  // the upper half of an i32 is the callee's business
  }
}

}  // namespace uptier::jit::x64
