#include "jit/code/frame_kind.h"

#include <cstring>

namespace uptier::jit {
namespace {

constexpr uint8_t kRet = 0xc3;

// Bodies without rows begin with `push rbp; mov rbp, rsp`, after ENDBR64 where that is asked for, and
// end with `leave; ret`.
FrameState::Kind usual_frame(const Code& code, const void* pc) {
  static constexpr uint8_t kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
  const auto* at = static_cast<const uint8_t*>(pc);
  const auto* push = static_cast<const uint8_t*>(code.entry());
  if (std::memcmp(push, kEndbr64, sizeof kEndbr64) == 0) push += sizeof kEndbr64;
  bool before = at == push || at == code.entry();
  if (before || *at == kRet) return FrameState::Kind::kNone;
  return at == push + 1 ? FrameState::Kind::kPushed : FrameState::Kind::kMade;
}

}  // namespace

FrameState::Kind frame_kind_at(const Code& code, const void* pc) noexcept {
  return code.tables().frames.empty() ? usual_frame(code, pc) : code.frame_at(pc).kind;
}

}  // namespace uptier::jit
