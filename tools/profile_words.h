// profile_words.h: the words of `uptier profile` overlap, export, import, dot and promote; main.cc
// has those of the other verbs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/profile_commands.h"

namespace uptier::tools {

// Outlives the parsing: commands are run while words are parsed. `code` receives the exit code.
class ProfileWords {
 public:
  void add_to(CLI::App& profile, int& code);

 private:
  void add_overlap(CLI::App& profile, int& code);
  void add_export(CLI::App& profile, int& code);
  void add_import(CLI::App& profile, int& code);
  void add_dot(CLI::App& profile, int& code);
  void add_promote(CLI::App& profile, int& code);

  ProfileOverlapCommand overlap_;
  ProfileExportCommand export_;
  ProfileImportCommand import_;
  ProfileDotCommand dot_;
  ProfilePromoteCommand promote_;
};

}  // namespace uptier::tools
