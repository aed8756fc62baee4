#include "jit/code/end_body.h"

#include <ucontext.h>

#include <cstring>

#include "jit/code/code_registry.h"
#include "sampler/context.h"

namespace uptier::jit {
namespace {

constexpr greg_t kEflagsDirection = 0x400;
constexpr uint8_t kRet = 0xc3;

// NOLINTBEGIN(performance-no-int-to-ptr): registers hold addresses

// The state of the frame in bodies without rows. They begin with `push rbp; mov rbp, rsp`, after
// ENDBR64 if it was requested, and end with `leave; ret`.
FrameState::Kind usual_frame(const Code& code, const void* pc) {
  static constexpr uint8_t kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
  const auto* at = static_cast<const uint8_t*>(pc);
  const auto* push = static_cast<const uint8_t*>(code.entry());
  if (std::memcmp(push, kEndbr64, sizeof kEndbr64) == 0) push += sizeof kEndbr64;
  bool before = at == push || at == code.entry();
  if (before || *at == kRet) return FrameState::Kind::kNone;
  return at == push + 1 ? FrameState::Kind::kPushed : FrameState::Kind::kMade;
}

FrameState::Kind frame_of(const Code& code, const void* pc) {
  return code.tables().frames.empty() ? usual_frame(code, pc) : code.frame_at(pc).kind;
}

void complete_frame(FrameState::Kind kind, greg_t* registers) {
  if (kind == FrameState::Kind::kMade) return;
  if (kind == FrameState::Kind::kNone) {
    registers[REG_RSP] -= 8;
    *reinterpret_cast<greg_t*>(registers[REG_RSP]) = registers[REG_RBP];
  }
  registers[REG_RBP] = registers[REG_RSP];
}

}  // namespace

bool end_body(void* machine, TrapCode code) noexcept {
  greg_t* registers = static_cast<ucontext_t*>(machine)->uc_mcontext.gregs;
  auto* pc = reinterpret_cast<const void*>(registers[REG_RIP]);
  const Code* body = find_code(pc);
  sampler::ThreadContext& context = *sampler::current_context();
  if (body == nullptr || context.activation == nullptr) return false;
  const void* exit = trap_exit_for(pc);
  if (exit == nullptr) return false;
  context.pending_trap = static_cast<uint32_t>(code);
  context.trap_location = 0;
  context.trap_method = 0;
  context.trap_detail = 0;
  context.trap_pc = reinterpret_cast<uintptr_t>(pc);
  complete_frame(frame_of(*body, pc), registers);
  registers[REG_RIP] = reinterpret_cast<greg_t>(exit);
  registers[REG_EFL] &= ~kEflagsDirection;
  return true;
}
// NOLINTEND(performance-no-int-to-ptr)

}  // namespace uptier::jit
