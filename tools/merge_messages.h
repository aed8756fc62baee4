// merge_messages.h: what a merge did that whoever asked for it should know.
#pragma once

#include <string>
#include <vector>

#include "uptier/profile.h"

namespace uptier::tools {

// Returns a line for each thing that is not plain addition: left out, kept apart, united, saturated.
std::vector<std::string> merge_messages(const MergeReport& report);

}  // namespace uptier::tools
