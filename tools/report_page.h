// report_page.h: the HTML report: one file that needs no other.
//
//   page.html with {{title}} {{style}} {{script}} {{data}} <- report/*.css, report/*.js, ReportData
//
// Law: nothing that comes from a profile can end the element that it stands in. Data is JSON in
// which every `<` and `&` is written as an escape, the title has its marks replaced, and the script
// makes text nodes only.
#pragma once

#include <string>
#include <string_view>

#include "tools/report_data.h"

namespace uptier::tools {

// The page's own files, as the build put them into the tool (report/embed.cmake).
extern const std::string_view kReportHtml;
extern const std::string_view kReportStyle;
extern const std::string_view kReportScript;

std::string report_page(const ReportData& data);

// Returns JSON as it may stand in a script element. Bytes that are no UTF-8 become U+FFFD.
std::string script_json(const nlohmann::ordered_json& j);

}  // namespace uptier::tools
