#include "jit/x64/emit_impl.h"
#include "sampler/context.h"

namespace uptier::jit::x64 {

// The arguments are in place already.
void Emitter::call(const MInst& i) {
  uint32_t bytes = 0;
  if (i.op == MOp::kCallIndirect) {
    bytes = b_.call_register(x86::rax);
  } else if (i.op == MOp::kCallHost) {
    bytes = b_.call_address(in_.function.host_callees[i.imm].address);
  } else {
    CallTarget target = in_.compile.calls.target(in_.function.callees[i.imm].method);
    switch (target.kind) {
      case CallTarget::Kind::kStub: bytes = b_.call_address(target.address); break;
      case CallTarget::Kind::kCell: bytes = b_.call_cell(target.address); break;
      case CallTarget::Kind::kSelf: bytes = b_.call_label(entry_); break;
    }
  }
  b_.call_row(i.loc, i.site, bytes);
  if ((i.flags & kCallMayTrap) == 0) return;
  b_.load_context(x86::r11);
  a_.cmp(x86::dword_ptr(x86::r11, sampler::kPendingTrapOffset), imm(0));
  b_.jump_address_if(x86::CondCode::kNE, in_.compile.helpers.trap_exit);
}

}  // namespace uptier::jit::x64
