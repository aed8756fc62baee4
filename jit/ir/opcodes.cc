#include "uptier/opcodes.h"

namespace uptier {
namespace {

constexpr OpcodeInfo kTable[] = {
#define X(id, text, shape, types, effects) {text, Shape::shape, types, effects},
    UPTIER_OPCODES(X)
#undef X
};
constexpr const char* kTraps[] = {
#define X(id, text) text,
    UPTIER_TRAPS(X)
#undef X
};
constexpr const char* kReasons[] = {
#define X(id, text) text,
    UPTIER_GUARD_REASONS(X)
#undef X
};

}  // namespace

const OpcodeInfo& info(Opcode op) { return kTable[static_cast<unsigned>(op)]; }
const char* trap_text(TrapCode code) { return kTraps[static_cast<unsigned>(code)]; }
const char* guard_reason_name(GuardReason reason) {
  return kReasons[static_cast<unsigned>(reason)];
}

const char* probe_kind_name(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kBlock: return "block";
    case ProbeKind::kEdge: return "edge";
    case ProbeKind::kCallTarget: return "call_target";
    case ProbeKind::kValue: return "value";
    case ProbeKind::kLoop: return "loop";
    case ProbeKind::kLog: return "log";
  }
  return "unknown";
}

}  // namespace uptier
