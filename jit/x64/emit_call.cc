// Calls. The arguments are in place already.
#include "jit/x64/emit_impl.h"
#include "sampler/context.h"

namespace uptier::jit::x64 {
namespace {

// Calls that run at least this often, of the executions of the start, count in place.
constexpr float kOften = 1.0f / 8;

}  // namespace

void Emitter::call(const MInst& i) {
  uint32_t bytes = 0;
  if (i.op == MOp::kCallIndirect) {
    bytes = b_.call_register(x86::rax);
  } else if (i.op == MOp::kCallHost) {
    bytes = b_.call_address(in_.function.host_callees[i.imm].address);
  } else {
    bytes = call_direct(i);
  }
  b_.call_row(i.loc, i.site, bytes);
  if ((i.flags & kCallMayTrap) == 0) return;
  b_.load_context(x86::r11);
  a_.cmp(x86::dword_ptr(x86::r11, sampler::kPendingTrapOffset), imm(0));
  b_.jump_address_if(x86::CondCode::kNE, in_.compile.helpers.trap_exit);
}

// Returns the length of the call instruction.
uint32_t Emitter::call_direct(const MInst& i) {
  MethodId callee = in_.function.callees[i.imm].method;
  CallTarget target = in_.compile.calls.target(callee);
  switch (target.kind) {
    case CallTarget::Kind::kCell: return b_.call_cell(target.address);
    case CallTarget::Kind::kSelf: return b_.call_label(entry_);
    case CallTarget::Kind::kCounted: return count_and_call(i, callee, target);
    case CallTarget::Kind::kStub: break;
  }
  return b_.call_address(target.address);
}

// The stub's instructions, without its jump:
//
//   mov r11, fs:[block]                           due: call the stub's tail
//   dec dword [r11 + state.call_countdown]             jmp back
//   js due
//   call [cell]
//   back:
uint32_t Emitter::count_and_call(const MInst& i, MethodId callee, const CallTarget& target) {
  const MBlock& block = m_.blocks[now_];
  const bool often = !block.cold && block.frequency >= kOften * m_.blocks[0].frequency;
  if (!often) return b_.call_address(target.stub);
  DueCall d{b_.new_label(), b_.new_label(), &i, target.due, 0, 0};
  if (const auto& rows = b_.tables().probes; !rows.empty()) {
    d.block = rows.back().site;
    d.body = rows.back().body;
  }
  {
    CodeBuffer::LibrarysOwn own(b_);
    a_.dec(b_.method_word(x86::r11, callee, sampler::kCallCountdownOffset, 4));
    a_.js(d.due);
  }
  uint32_t bytes = b_.call_cell(target.address);
  b_.bind(d.back);
  due_calls_.push_back(d);
  return bytes;
}

void Emitter::due_calls() {
  for (const DueCall& d : due_calls_) {
    b_.bind(d.due);
    if (!m_.origins.empty()) b_.first_line_row(m_.origins[d.from - m_.insts.data()]);
    if (d.block != 0) b_.probe_row(d.block, d.body);
    uint32_t bytes = b_.call_address(d.target);
    b_.call_row(d.from->loc, d.from->site, bytes);
    a_.jmp(d.back);
  }
}

}  // namespace uptier::jit::x64
