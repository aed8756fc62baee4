// profile_changes.h: two sides of profiles, and which methods differ by more than the noise of the sides.
//
// A side is one file or several; with several, the noise includes what its runs differ by
// (profile/algebra/run_shares.h). Methods are compared by time and by executions, each with half of the
// error, if both sides have stack samples; else by executions. Methods of another module are those with
// the same names (profile/algebra/same_names.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "profile/algebra/run_shares.h"
#include "uptier/profile_file.h"

namespace uptier::tools {

// The words that `profile diff` and `profile overlap` share.
struct ChangesCommand {
  std::string a, b;                        // one file a side, or
  std::vector<std::string> before, after;  // several
  std::string by;                          // "time", "executions", or "": both if there are both
  std::optional<double> threshold;  // points; a greater change beyond the noise is exit code 1
  bool json = false;
  bool markdown = false;
};

struct ComparedSide {
  std::vector<ProfileFile> files;
  Profile sum;  // of the files
};

// The changes by one measure.
struct MeasuredChanges {
  const char* by = "";  // "time" or "executions"
  double error = 0;     // the probability of any change beyond the noise if nothing changed
  std::vector<profile::NamedChange>
      items;          // those beyond the noise first, then by how far they moved
  size_t tested = 0;  // how many could have been found
  size_t beyond = 0;
};

struct ProfileChanges {
  ComparedSide before, after;
  std::vector<MeasuredChanges> measured;
  OverlapReport overlap;                 // of the sums
  std::vector<std::string> added, gone;  // methods that only one side has
  uint64_t renamed = 0;                  // methods of another module that were found by name
  bool changed = false;                  // one moved beyond the noise, and by the threshold or more

  // Returns the name of a method or place.
  std::string name(const PathFrame& f) const;
  // Returns how alike a method is on both sides, or null.
  const MethodOverlap* alike(const PathFrame& f) const;
  // Returns whether nothing but an assumption says what runs differ by.
  bool is_assumed() const { return before.files.size() + after.files.size() == 2; }
};

// Reads both sides and compares them. Returns kOk, or the exit code after a message.
int find_changes(const ChangesCommand& c, ProfileChanges& changes);

// Returns the exit code of a comparison that ended with `code`. With a threshold 1 means a change, so
// that all that fails for another reason, and was 1, is 2.
int exit_code(const ChangesCommand& c, const ProfileChanges& changes, int code);

// Returns "changed", "threshold", "added", "gone", and "changes": for each measure its name, "error",
// "tested", "beyond", the number of runs of each side, and the methods with their shares and noise.
nlohmann::ordered_json changes_json(const ChangesCommand& c, const ProfileChanges& changes);

// Prints a line about each measure that names the methods that moved beyond the noise.
void print_changes_in_short(const ProfileChanges& changes);

// Prints tables of at most `top` rows, for people or for a pull request.
void print_changes(const ProfileChanges& changes, uint64_t top);
void print_changes_as_markdown(const ProfileChanges& changes, uint64_t top);

}  // namespace uptier::tools
