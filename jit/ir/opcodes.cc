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
#define X(number, id, name, text, placed_by) \
  case ProbeKind::id: return text;
    UPTIER_PROBE_KINDS(X)
#undef X
  }
  return "?";
}

bool host_places(ProbeKind kind) {
  constexpr bool HOST = true, LIBRARY = false;
  switch (kind) {
#define X(number, id, name, text, placed_by) \
  case ProbeKind::id: return placed_by;
    UPTIER_PROBE_KINDS(X)
#undef X
  }
  return false;
}

}  // namespace uptier
