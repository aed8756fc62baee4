#include "tools/merge_messages.h"

#include <utility>

namespace uptier::tools {

std::vector<std::string> merge_messages(const MergeReport& report) {
  const std::pair<uint64_t, const char*> notes[] = {
      {report.dropped.size(),
       "profiles of methods that break a rule, or of inlined bodies of other code, were left out"},
      {report.other_code,
       "profiles of methods are of other code than the latest run's: kept beside it, not counted"},
      {report.united,
       "profiles of methods are of runs with other options: each site has what the runs that "
       "observed it saw"},
      {report.saturated, "counts stopped at 2^64-1"}};
  std::vector<std::string> lines;
  for (const auto& [count, what] : notes) {
    if (count != 0) lines.push_back(std::to_string(count) + " " + what);
  }
  return lines;
}

}  // namespace uptier::tools
