// merge_messages.h: messages about a merge, for the user.
#pragma once

#include <string>
#include <vector>

#include "uptier/profile.h"

namespace uptier::tools {

// Returns a line for each thing that is not plain addition: left out, kept apart, united, saturated.
std::vector<std::string> merge_messages(const MergeReport& report);

}  // namespace uptier::tools
