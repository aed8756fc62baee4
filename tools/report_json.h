// report_json.h: the report for programs. Keys are the field names of uptier/report.h, with the
// fields of MethodReport::key beside the others; an id that is none, and what is not known, is
// null. Of a site stand the fields that its kind has.
#pragma once

#include <string>

#include "uptier/report.h"

namespace uptier::tools {

std::string report_json(const Report& r);

}  // namespace uptier::tools
