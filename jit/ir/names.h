// names.h: the words of the text form, and how to read them back.
//
// Enumerators are written as their identifiers in snake case: kDivideByZero is `divide_by_zero`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "uptier/ids.h"
#include "uptier/opcodes.h"

namespace uptier::jit {

// Returns e.g. "divide_by_zero"; "?" for a value outside the enum.
std::string trap_name(TrapCode code);

std::optional<TrapCode> trap_of_name(std::string_view name);
std::optional<GuardReason> guard_reason_of_name(std::string_view name);
std::optional<ProbeKind> probe_kind_of_name(std::string_view name);
std::optional<Opcode> opcode_of_text(std::string_view text);
// Accepts every type except kNone.
std::optional<Type> type_of_name(std::string_view name);

inline constexpr unsigned kTrapCount = 0
#define X(id, name, text) +1
    UPTIER_TRAPS(X)
#undef X
    ;
inline constexpr unsigned kGuardReasonCount = 0
#define X(id, name, text) +1
    UPTIER_GUARD_REASONS(X)
#undef X
    ;

}  // namespace uptier::jit
