#include "jit/frontend/op_call.h"

namespace uptier::jit {

const char* call_that_makes(Shape s) noexcept {
  switch (s) {
    case Shape::kConst: return "constant";
    case Shape::kUnary:
    case Shape::kTest: return "unary";
    case Shape::kBinary:
    case Shape::kCompare: return "binary";
    case Shape::kConvert: return "convert";
    case Shape::kSelect: return "select";
    case Shape::kLoad: return "load";
    case Shape::kStore: return "store";
    case Shape::kCall: return "call";
    case Shape::kCallIndirect: return "call_indirect";
    case Shape::kCallHost: return "call_host";
    case Shape::kJump: return "jump";
    case Shape::kBranch: return "branch";
    case Shape::kSwitch: return "switch_on";
    case Shape::kReturn: return "ret";
    case Shape::kTrap: return "trap";
    case Shape::kTrapIf: return "trap_if";
    case Shape::kLoopHeader: return "loop_header";
    case Shape::kProbe: return "probe";
    case Shape::kKnownCount: return "known_count";
    case Shape::kFrameState: return "frame_state";
    case Shape::kGuard: return "guard";
    case Shape::kBulk:
    case Shape::kFrameMemory: return nullptr;  // only the library makes them
  }
  return nullptr;
}

}  // namespace uptier::jit
