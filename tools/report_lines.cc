#include "tools/report_lines.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "tools/line_profile.h"
#include "tools/module_lines.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

constexpr uintmax_t kMostText = 4u << 20;  // bytes of one file

struct FileLines {
  std::vector<HotLine> lines;
  double ns = 0, operations = 0;
};

// Fills in the text of a file, or why there is none.
void add_text(ordered_json& file, const std::string& path) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(path, error);
  const uintmax_t size = regular ? std::filesystem::file_size(path, error) : 0;
  std::ifstream in;
  if (regular && !error && size <= kMostText) in.open(path, std::ios::binary);
  if (!in.is_open()) {
    file["missing"] = size > kMostText ? "the file is larger than 4 MiB"
                                       : "the file cannot be read on the machine of the report";
    return;
  }
  ordered_json text = ordered_json::array();
  for (std::string line; std::getline(in, line);) text.push_back(line);
  file["text"] = std::move(text);
}

ordered_json file_json(const std::string& name, FileLines& f, bool timed, bool texts) {
  std::ranges::sort(f.lines, {}, &HotLine::line);
  ordered_json lines = ordered_json::array();
  for (const HotLine& l : f.lines) {
    lines.push_back({l.line, l.executions, l.operations, l.ns, l.function});
  }
  ordered_json j = {
      {"name", name}, {"weight", timed ? f.ns : f.operations}, {"lines", std::move(lines)}};
  if (texts) {
    add_text(j, name);
  } else {
    j["missing"] = "uptier report --sources shows the text of the files that the module names";
  }
  return j;
}

}  // namespace

ordered_json report_lines(const std::string& module, const std::string& profile_name,
                          const ProfileFile& profile, bool texts) {
  Result<std::unique_ptr<ModuleLines>> opened = ModuleLines::open(module);
  if (!opened) return {{"none", opened.error().message}};
  Result<LineProfile> lines = LineProfile::of(profile_name, profile, **opened);
  if (!lines) return {{"none", lines.error().message}};
  std::map<std::string, FileLines> by_name;
  for (HotLine& l : lines->hottest()) {
    FileLines& f = by_name[l.file];
    f.ns += l.ns;
    f.operations += l.operations;
    f.lines.push_back(std::move(l));
  }
  const bool timed = lines->ns() > 0;
  std::vector<ordered_json> files;
  for (auto& [name, f] : by_name) files.push_back(file_json(name, f, timed, texts));
  std::ranges::stable_sort(files, [](const ordered_json& a, const ordered_json& b) {
    return a["weight"].get<double>() > b["weight"].get<double>();
  });
  return {{"timed", timed}, {"files", std::move(files)}};
}

}  // namespace uptier::tools
