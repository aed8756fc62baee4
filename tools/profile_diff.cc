// uptier profile diff: how shares moved from one side to the other, and what is left of B without A.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "profile/algebra/algebra.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/profile_changes.h"
#include "tools/profile_commands.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

// Writes B minus A, with the keys that they have in their files.
int write_rest(const ProfileDiffCommand& c) {
  ProfileFile first, second;
  if (int code = open_profile(c.sides.a, first); code != kOk) return code;
  if (int code = open_profile(c.sides.b, second); code != kOk) return code;
  const uint64_t missing = profile::subtract(second.profile, first.profile);
  if (missing != 0) {
    fail(kOk, std::to_string(missing) + " counts of " + c.sides.b + " fell below the share of " +
                  c.sides.a);
  }
  (void)profile::subtract(second.calls, first.calls);
  second.foreign = {};
  second.info.uploads.clear();  // what is left is not the sum of any runs
  return write_profile(c.out, second);
}

}  // namespace

int profile_diff(const ProfileDiffCommand& command) {
  ProfileDiffCommand c = command;
  if (is_taken(c.out)) return kUsage;
  if (!c.out.empty() && c.sides.a.empty()) {
    return fail(kUsage,
                "-o: the rest is B minus A, so each side must be one file: merge them first "
                "(uptier profile merge), and give A and B");
  }
  if (!c.out.empty()) {  // reads both files twice
    c.sides.a = seekable(c.sides.a);
    c.sides.b = seekable(c.sides.b);
  }
  ProfileChanges changes;
  int code = find_changes(c.sides, changes);
  if (code != kOk) return exit_code(c.sides, changes, code);
  if (c.sides.json) {
    nlohmann::ordered_json j = overlap_json(changes.overlap);
    j.update(changes_json(c.sides, changes));
    print_json(j);
  } else if (c.sides.markdown) {
    print_changes_as_markdown(changes, c.top);
  } else {
    print_changes(changes, c.top);
  }
  if (!c.out.empty()) code = write_rest(c);
  return exit_code(c.sides, changes, code);
}

}  // namespace uptier::tools
