// speedscope: the call paths of a profile, as speedscope and its like read them.
#pragma once

#include <string>

#include "uptier/profile_file.h"

namespace uptier::tools {

// Returns a file of one sampled profile: a sample for each call path, weighted by its processor time in
// nanoseconds. Source: https://www.speedscope.app/file-format-schema.json.
std::string speedscope_json(const ProfileFile& file);

}  // namespace uptier::tools
