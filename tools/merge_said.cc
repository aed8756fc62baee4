#include "tools/merge_said.h"

#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/fail.h"

namespace uptier::tools {

void MergeSaid::say(const std::string& file, const std::string& message) {
  fail(kOk, file.empty() ? message : file + ": " + message);
  said_.push_back({file, message});
}

nlohmann::ordered_json MergeSaid::json(const std::string& output,
                                       const std::vector<std::string>& files, uint64_t runs,
                                       uint64_t known_uploads) const {
  auto about = [&](const std::string& file) {
    auto list = nlohmann::ordered_json::array();
    for (const Message& m : said_) {
      if (m.file == file) list.push_back(m.text);
    }
    return list;
  };
  nlohmann::ordered_json all = {{"output", output}, {"files", nlohmann::ordered_json::array()}};
  for (const std::string& file : files) {
    all["files"].push_back({{"path", file}, {"messages", about(file)}});
  }
  all["runs"] = runs;
  all["known_uploads"] = known_uploads;
  all["messages"] = about("");
  return all;
}

}  // namespace uptier::tools
