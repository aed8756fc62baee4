// Calls. Every register is the callee's, so all that lives on goes home first.
#include "jit/baseline/selector.h"
#include "sampler/context.h"

namespace uptier::jit::baseline {

namespace {

constexpr unsigned kTargetRegister = Gp::kIdAx;  // of indirect calls; carries no argument

}  // namespace

void Selector::call(const Inst& i) {
  auto args = f_.args(i);
  bool indirect = i.op == Opcode::kCallIndirect;
  for (Value v : args) values_.use_later(v);
  values_.save_all();
  arg_moves_.clear();
  if (indirect) arg_moves_.push_back({args[0], kTargetRegister});
  pass_arguments(args.subspan(indirect ? 1 : 0), f_.signature_of(i));
  load_arguments(arg_moves_);
  for (Value v : args) values_.settle(v);
  if (held(current_)) store_countdown();
  emit_call(i);
  if (held(current_)) load_countdown();
  values_.forget_all();
  take_result(i);
}

// Stores the stack arguments, and lists those for registers in arg_moves_.
void Selector::pass_arguments(std::span<const Value> args, const Signature& s) {
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

// The frame that deopt makes of a caller returns to where the call does, so it looks for a trap too.
void Selector::emit_call(const Inst& i) {
  emit_call_alone(i);
  b_.call_row(i.loc);
  if (request_.enterable && returns_to_point(i.op)) returns_.push_back(b_.offset());
  if ((i.flags & kCallMayTrap) == 0) return;
  b_.load_context(kScratch);
  a_.cmp(x86::dword_ptr(kScratch, sampler::kPendingTrapOffset), imm(0));
  b_.jump_address_if(x86::CondCode::kNE, in_.helpers.trap_exit);
}

void Selector::emit_call_alone(const Inst& i) {
  if (i.op == Opcode::kCallIndirect) {
    const ProbePlan::Site* site = planned_site(f_, probes_, i);
    if (site != nullptr) count_in_table(*site, x86::gpq(kTargetRegister));
    a_.call(x86::gpq(kTargetRegister));
    return;
  }
  if (i.op == Opcode::kCallHost) return b_.call_address(f_.host_callees[i.imm].address);
  CallTarget target = in_.calls.target(f_.callees[i.imm].method);
  switch (target.kind) {
    case CallTarget::Kind::kStub: b_.call_address(target.address); break;
    case CallTarget::Kind::kCell: b_.call_cell(target.address); break;
    case CallTarget::Kind::kSelf: a_.call(self_); break;
  }
}

void Selector::take_result(const Inst& i) {
  if (!i.result.valid()) return;
  if (is_float(i.type)) {
    values_.define(i.result, x86::xmm0);
  } else {
    values_.define(i.result, x86::rax, false);  // the upper half of an i32 is the callee's business
  }
}

}  // namespace uptier::jit::baseline
