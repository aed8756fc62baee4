// corrupt.h: the error of input that breaks a rule of its format.
#pragma once

#include <string>
#include <utility>

#include "uptier/result.h"

namespace uptier::profile {

// Returns kCorruptInput; `rule` names the rule that the input breaks.
inline Error corrupt(std::string rule) { return Error{ErrorCode::kCorruptInput, std::move(rule)}; }

}  // namespace uptier::profile
