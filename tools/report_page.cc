#include "tools/report_page.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

std::string html_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

void add_data(const std::string& id, const ordered_json& j, std::string& out) {
  out += "<script type=\"application/json\" id=\"" + id + "\">" + script_json(j) + "</script>\n";
}

std::string data_elements(const ReportData& data) {
  std::string out;
  add_data("data", data.page, out);
  for (size_t i = 0; i < data.parts.size(); ++i) {
    add_data("part-" + std::to_string(i), data.parts[i], out);
  }
  return out;
}

}  // namespace

std::string script_json(const ordered_json& j) {
  const std::string text = j.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (const char c : text) {
    switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  }
  return out;
}

std::string report_page(const ReportData& data) {
  std::string out;
  std::string_view rest = kReportHtml;
  // Inserted text is not scanned for more marks.
  for (size_t at; (at = rest.find("{{")) != std::string_view::npos;) {
    out += rest.substr(0, at);
    const size_t end = rest.find("}}", at);
    const std::string_view what = rest.substr(at + 2, end - at - 2);
    if (what == "title") out += html_text(data.page["name"].get<std::string>());
    if (what == "style") out += kReportStyle;
    if (what == "script") out += kReportScript;
    if (what == "data") out += data_elements(data);
    rest.remove_prefix(end + 2);
  }
  return out += rest;
}

}  // namespace uptier::tools
