// speedscope: the call paths of a profile, as speedscope and its like read them.
#pragma once

#include <string>

#include "tools/line_profile.h"
#include "uptier/profile_file.h"

namespace uptier::tools {

// Returns a file of one sampled profile: a sample for each call path, weighted by its processor time in
// nanoseconds. With lines (may be null), the end of each path is divided among the lines of its method, in
// proportion to their operations. Source: https://www.speedscope.app/file-format-schema.json.
std::string speedscope_json(const ProfileFile& file, const LineProfile* lines = nullptr);

}  // namespace uptier::tools
