// merge_said.h: what a merge says: each message at once, for people, and in the end all together, for
// programs.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace uptier::tools {

class MergeSaid {
 public:
  // Prints a message; `file`: what it is about, or empty for the merge as a whole.
  void say(const std::string& file, const std::string& message);
  // Returns "output" (the path), "files" (a list of "path" and "messages"), "runs" in the output,
  // "known_uploads" (those of files that other files had too), and "messages".
  nlohmann::ordered_json json(const std::string& output, const std::vector<std::string>& files,
                              uint64_t runs, uint64_t known_uploads) const;

 private:
  struct Message {
    std::string file, text;
  };
  std::vector<Message> said_;
};

}  // namespace uptier::tools
