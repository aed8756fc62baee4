// coverage.h: which source lines ran, from exact counts of blocks.
//
// A line's count is the count of its most frequent block; if several functions have code of the line (copies
// of an inlined body), their counts are added. Functions that were never called have the count 0, and so do
// their lines. Lines whose code was never described, such as those after an endless loop, did not run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/module_lines.h"
#include "uptier/profile.h"

namespace uptier::tools {

struct Coverage {
  struct Function {
    std::string name;
    uint32_t line = 0;
    uint64_t calls = 0;
  };
  // A conditional branch of the code, by edge. The compiler decides which condition a source line has.
  struct Branch {
    uint32_t line = 0;
    bool reached = false;
    uint64_t counts[2] = {0, 0};
  };
  struct File {
    std::vector<Function> functions;  // by line, then name
    std::vector<Branch> branches;     // by line, then in the order of code
    std::map<uint32_t, uint64_t> lines;
  };
  std::map<std::string, File> files;
};

// `counts` must be exact: those of instrumented code.
Coverage coverage_of(const ModuleLines& module, const Profile& counts);

// Returns the coverage in the format of lcov's tracefiles, or as JSON:
//   {"files": [{"file", "lines": [[line, count]...], "branches": [[line, count, count]...],
//               "functions": [{"name", "line", "calls"}...]}...]}
std::string coverage_lcov(const Coverage& c);
std::string coverage_json(const Coverage& c);

// Removes files that cannot be read here, such as a library's, whose sources genhtml would miss. Returns
// how many.
size_t leave_out_missing(Coverage& c);

}  // namespace uptier::tools
