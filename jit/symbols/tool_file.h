// tool_file: a file that another tool looks for by its name, such as /tmp/perf-PID.map.
//
// Process ids repeat: in a container each start has the same one, and /tmp outlives it. So a file
// of this user that is not locked comes from an earlier process, and a new one replaces it. The
// writer of a file holds its lock (flock). Anything else with that name is left alone, and creation
// fails.
#pragma once

#include <string>

#include "uptier/result.h"

namespace uptier::jit {

// Creates the file, mode 0600, and returns its descriptor, for reading and writing. Error: kIo.
Result<int> create_tool_file(const std::string& path);

}  // namespace uptier::jit
