// profile_commands.h: what `uptier profile` does, apart from how its words are parsed.
//
// Every command reads profile files, traces and profiles as text, whichever a file is. What is
// wrong with a file goes to stderr with its name; exit codes are those of commands.h.
#pragma once

#include <string>
#include <vector>

#include "uptier/profile_file.h"

namespace uptier::tools {

// Reads one file of any of the three kinds.
Result<ProfileFile> load_profile(const std::string& path);

struct ProfileShowCommand {
  std::string file;
  bool json = false;
  bool log = false;    // the decisions of its runs instead
  bool calls = false;  // who calls whom instead
  bool order = false;  // who was called first instead
  std::string method;  // every site of the methods of this name
  uint64_t top = 10;
};
int profile_show(const ProfileShowCommand& c);

struct ProfileMergeCommand {
  std::vector<std::string> files;  // PATH, or FACTOR@PATH
  std::string out;
  double half_life = 0;  // days; a run so much older than the latest counts half; 0: all the same
  uint64_t trim = 0;     // entries that a table keeps; 0: all
  bool sparse = false;   // methods of which nothing was seen go
  bool force = false;    // sums files that share some runs
  uint64_t threads = 0;  // 0: as many as help
};
int profile_merge(const ProfileMergeCommand& c);

// Prints how alike two profiles are, by kind, and the methods that differ most; trace.cc.
void print_overlap(OverlapReport report);

int profile_overlap(const std::string& a, const std::string& b);
// How shares moved from a to b; `out` (may be empty) receives b less a.
int profile_diff(const std::string& a, const std::string& b, uint64_t top, const std::string& out);
int profile_top(const std::string& file, uint64_t n, const std::string& out);
int profile_check(const std::vector<std::string>& files);
// Prints the calls between methods, or the methods in the order of their first calls;
// profile_calls.cc.
int profile_show_calls(const std::string& file, uint64_t top);
int profile_show_order(const std::string& file, uint64_t top);
// Says what a profile knows of a module that was edited since: methods kept, matched by their
// calls, dropped. `out` (may be empty) receives the profile of that module; profile_match.cc.
int profile_match(const std::string& file, const std::string& module, const std::string& out);
// format: json, csv, tsv, lcov, folded, llvm-text or text.
int profile_export(const std::string& file, const std::string& format, const std::string& out);

}  // namespace uptier::tools
