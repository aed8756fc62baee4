#include "jit/ir/names.h"

namespace uptier::jit {
namespace {

constexpr const char* kTrapIds[] = {
#define X(id, name, text) #id,
    UPTIER_TRAPS(X)
#undef X
};

// "kDivideByZero" -> "divide_by_zero"
std::string snake(std::string_view id) {
  std::string out;
  for (char c : id.substr(1)) {
    bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty()) out += '_';
    out += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace

std::string trap_name(TrapCode code) {
  auto index = static_cast<unsigned>(code);
  return index < kTrapCount ? snake(kTrapIds[index]) : "?";
}

std::optional<TrapCode> trap_of_name(std::string_view name) {
  for (unsigned i = 0; i < kTrapCount; ++i) {
    if (snake(kTrapIds[i]) == name) return static_cast<TrapCode>(i);
  }
  return std::nullopt;
}

std::optional<GuardReason> guard_reason_of_name(std::string_view name) {
  for (unsigned i = 0; i < kGuardReasonCount; ++i) {
    if (guard_reason_name(static_cast<GuardReason>(i)) == name) return static_cast<GuardReason>(i);
  }
  return std::nullopt;
}

std::optional<ProbeKind> probe_kind_of_name(std::string_view name) {
  for (auto k = ProbeKind::kBlock; k <= kLastProbeKind;
       k = static_cast<ProbeKind>(static_cast<int>(k) + 1)) {
    if (probe_kind_name(k) == name) return k;
  }
  return std::nullopt;
}

std::optional<Opcode> opcode_of_text(std::string_view text) {
  for (unsigned i = 0; i < kOpcodeCount; ++i) {
    if (info(static_cast<Opcode>(i)).text == text) return static_cast<Opcode>(i);
  }
  return std::nullopt;
}

std::optional<Type> type_of_name(std::string_view name) {
  for (Type t : {Type::kI32, Type::kI64, Type::kF32, Type::kF64, Type::kRef}) {
    if (type_name(t) == name) return t;
  }
  return std::nullopt;
}

}  // namespace uptier::jit
