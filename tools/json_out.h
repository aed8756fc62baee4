// json_out.h: how a command prints JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "uptier/profile.h"

namespace uptier::tools {

// Prints a value on stdout, indented, with a final newline. Bytes that are no UTF-8 become
// U+FFFD. Returns kOk, for the command to return.
int print_json(const nlohmann::ordered_json& j);

// Returns what `compare` said: "overlap", "only_a", "only_b", "mismatched", the same of each kind
// under "kinds", and "methods" with their shares.
nlohmann::ordered_json overlap_json(const OverlapReport& r);

}  // namespace uptier::tools
