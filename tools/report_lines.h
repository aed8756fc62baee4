// report_lines.h: the source lines of a profile, for the page's view of sources.
//
//   {"timed": bool,
//    "files": [{"name", "weight", "lines": [[line, executions, operations, ns, function]..],
//               "text": [line..], or without: why it is not there}..]}
//
// Files and numbers are those of `profile show --lines` (line_profile.h). Files are sorted by weight:
// their time where it is known, else their operations.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "uptier/profile_file.h"

namespace uptier::tools {

// Reads the lines of the module at a path. `texts`: read the source files as well. A module names
// any file that it likes, so that is for those who trust it. Files beyond 4 MiB, and what is no
// regular file, are not read. Returns {"none": why} if there are no lines.
nlohmann::ordered_json report_lines(const std::string& module, const std::string& profile_name,
                                    const ProfileFile& profile, bool texts);

}  // namespace uptier::tools
