#include "tools/merge_messages.h"

#include <utility>

namespace uptier::tools {

std::vector<std::string> merge_messages(const MergeReport& report) {
  const std::pair<uint64_t, const char*> notes[] = {
      {report.dropped.size(),
       "profiles were left out: of methods that break a rule, or of inlined bodies of other code"},
      {report.other_code,
       "profiles of methods belong to other code than the latest run: kept separately, not "
       "counted"},
      {report.united,
       "profiles of methods come from runs with other options: each site has only the data of the "
       "runs that observed it"},
      {report.saturated, "counts stopped at 2^64-1"}};
  std::vector<std::string> lines;
  for (const auto& [count, what] : notes) {
    if (count != 0) lines.push_back(std::to_string(count) + " " + what);
  }
  return lines;
}

}  // namespace uptier::tools
