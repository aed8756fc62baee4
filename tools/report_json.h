// report_json.h: the report for programs. Keys are the field names of uptier/report.h, with the
// fields of MethodReport::key beside the others; missing ids and unknown numbers are
// null. A site has the fields of its kind.
#pragma once

#include <string>

#include "uptier/report.h"

namespace uptier::tools {

std::string report_json(const Report& r);

}  // namespace uptier::tools
