// llvm_profile_text.h: the counts in a sample profile of LLVM's with probes, in text form.
//
//   "outer:3 @ leaf#2" -> count    of probe 2 of `leaf`, inlined at or called from probe 3 of `outer`
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <sstream>
#include <string>

namespace uptier::test {

using ProbeCounts = std::map<std::string, uint64_t>;

// Counts of 0 are left out.
inline ProbeCounts counts_in_profile(const std::string& text) {
  ProbeCounts counts;
  std::map<size_t, std::string> paths;  // by indentation
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos || line[indent] == '!') continue;
    if (indent == 0) {
      const size_t total = line.rfind(':', line.rfind(':') - 1);
      paths[1] = line[0] == '[' ? line.substr(1, line.rfind(']') - 1) : line.substr(0, total);
      continue;
    }
    const size_t colon = line.find(": ");
    const std::string id = line.substr(indent, colon - indent), rest = line.substr(colon + 2);
    if (rest[0] >= '0' && rest[0] <= '9') {
      const uint64_t n = std::stoull(rest);
      if (n != 0) counts[paths[indent] + "#" + id] += n;
    } else {
      paths[indent + 1] = paths[indent] + ":" + id + " @ " + rest.substr(0, rest.rfind(':'));
    }
  }
  return counts;
}

}  // namespace uptier::test
