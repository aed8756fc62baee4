// tool_file: a file that another tool looks for by its name, such as /tmp/perf-PID.map.
//
// Process ids come again: in a container each start has the same one, and /tmp outlives it. So a
// file of this user's that nobody holds any more is an old one's, and a new one takes its place. Who
// writes one holds its lock (flock). Whatever else has the name is left alone, and refused.
#pragma once

#include <string>

#include "uptier/result.h"

namespace uptier::jit {

// Creates the file, mode 0600, and returns its descriptor, for reading and writing. Error: kIo.
Result<int> create_tool_file(const std::string& path);

}  // namespace uptier::jit
