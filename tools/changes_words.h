// changes_words: the words that `profile diff` and `profile overlap` share.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/profile_changes.h"

namespace uptier::tools {

inline void add_changes_words(CLI::App& to, ChangesCommand& c) {
  to.add_option("A", c.a, "the profile before");
  to.add_option("B", c.b, "the profile after");
  to.add_option("--before", c.before,
                "several files instead of A: their differences are part of the noise");
  to.add_option("--after", c.after, "several files instead of B");
  to.add_option("--by", c.by, "time | executions; both if all files have stack samples")
      ->check(CLI::IsMember({"time", "executions"}));
  to.add_option("--threshold", c.threshold,
                "exit code 1 if a share moved by these points or more, and beyond the noise")
      ->check(CLI::Range(0.0, 100.0));
  CLI::Option* json = to.add_flag("--json", c.json, "as JSON: all methods");
  to.add_flag("--markdown", c.markdown, "as a table for a pull request")->excludes(json);
  to.footer(
      "Noise: if nothing changed, the probability that any share moves beyond it is 5 % at most.\n"
      "Exit codes: 0; with --threshold also 1 for a change and 2 for an error; 3 damaged.");
}

}  // namespace uptier::tools
