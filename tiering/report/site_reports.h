// The results of probes other than control flow and loops, for a report.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "uptier/profile.h"
#include "uptier/report.h"

namespace uptier::tiering {

using MethodNames = std::map<MethodKey, std::string_view>;

// Returns the sites with data, most executions first. `names`: the names of callees; a callee
// without a name is shown by its key. O(words + entries).
std::vector<SiteReport> site_reports(const MethodProfile& p, const MethodNames& names);

}  // namespace uptier::tiering
