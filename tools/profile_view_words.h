// profile_view_words.h: the words of `uptier profile` show, merge, diff, top, check, log and match.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/profile_commands.h"

namespace uptier::tools {

// Outlives the parsing: commands are run while words are parsed. `code` receives the exit code.
class ProfileViewWords {
 public:
  void add_to(CLI::App& profile, int& code);

 private:
  void add_show(CLI::App& profile, int& code);
  void add_merge(CLI::App& profile, int& code);
  void add_diff(CLI::App& profile, int& code);
  void add_top(CLI::App& profile, int& code);
  void add_check(CLI::App& profile, int& code);
  void add_log(CLI::App& profile, int& code);
  void add_match(CLI::App& profile, int& code);

  ProfileShowCommand show_;
  ProfileMergeCommand merge_;
  ProfileDiffCommand diff_;
  std::string file_, other_file_, output_;
  std::vector<std::string> files_;
  uint64_t top_ = 10;
  bool json_ = false;
  bool csv_ = false;
};

}  // namespace uptier::tools
