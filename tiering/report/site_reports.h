// What probes beside control flow and loops saw, for a report.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "uptier/profile.h"
#include "uptier/report.h"

namespace uptier::tiering {

using MethodNames = std::map<MethodKey, std::string_view>;

// Returns the sites that saw something, most executions first. `names`: of callees; one that is not
// there is shown by its key. O(words + entries).
std::vector<SiteReport> site_reports(const MethodProfile& p, const MethodNames& names);

}  // namespace uptier::tiering
