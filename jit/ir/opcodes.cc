#include "uptier/opcodes.h"

#include <iterator>

namespace uptier {
namespace {

constexpr const char* kTraps[] = {
#define X(id, name, text) text,
    UPTIER_TRAPS(X)
#undef X
};
constexpr const char* kReasons[] = {
#define X(id, name, text) text,
    UPTIER_GUARD_REASONS(X)
#undef X
};

}  // namespace

// A value outside its enum (a damaged file, broken IR) has the name "?".
const char* trap_text(TrapCode code) {
  auto index = static_cast<unsigned>(code);
  return index < std::size(kTraps) ? kTraps[index] : "?";
}
const char* guard_reason_name(GuardReason reason) {
  auto index = static_cast<unsigned>(reason);
  return index < std::size(kReasons) ? kReasons[index] : "?";
}

const char* probe_kind_name(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kBlock: return "block";
    case ProbeKind::kEdge: return "edge";
    case ProbeKind::kCallTarget: return "call_target";
    case ProbeKind::kValue: return "value";
    case ProbeKind::kLoop: return "loop";
    case ProbeKind::kLog: return "log";
    case ProbeKind::kCounter: return "counter";
    case ProbeKind::kHit: return "hit";
    case ProbeKind::kGauge: return "gauge";
    case ProbeKind::kRange: return "range";
  }
  return "?";
}

}  // namespace uptier
