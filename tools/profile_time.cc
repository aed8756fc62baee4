// uptier profile show --time: the tree of call paths.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/profile_commands.h"
#include "tools/profile_top.h"
#include "tools/time_json.h"

namespace uptier::tools {
namespace {

// A path with the time of all paths after it.
struct TimedPath {
  const PathTime* path;
  uint64_t all_ns;
  std::vector<TimedPath> callees;  // most time first
};

TimedPath timed(const PathTime& p) {
  TimedPath t{&p, p.ns, {}};
  for (const PathTime& callee : p.callees) {
    t.callees.push_back(timed(callee));
    t.all_ns += t.callees.back().all_ns;
  }
  std::ranges::stable_sort(t.callees, std::greater<>{}, &TimedPath::all_ns);
  return t;
}

void print_path(const ProfileFile& file, const TimedPath& t, double least, size_t depth) {
  const auto whole = static_cast<double>(file.calls.time.sampled_ns);
  const double all = 100 * static_cast<double>(t.all_ns) / whole;
  if (all < least) return;
  std::printf("%7.2f%% %7.2f%%  %*s%s\n", all, 100 * static_cast<double>(t.path->ns) / whole,
              static_cast<int>(2 * depth), "", frame_name(file.profile, t.path->frame).c_str());
  for (const TimedPath& callee : t.callees) print_path(file, callee, least, depth + 1);
}

}  // namespace

int profile_show_time(const std::string& path, double least, bool json) {
  ProfileFile file;
  if (int code = open_profile(path, file); code != kOk) return code;
  const TimeProfile& time = file.calls.time;
  if (time.sampled_ns == 0) {
    return fail(kFailed, path + ": has no time: its runs did not sample stacks (run --sample)");
  }
  if (json) return print_json(time_json(file));
  const TimedPath all = timed(time.root);
  std::printf("%8s %8s  %s\n", "total", "own", "call path");
  for (const TimedPath& p : all.callees) print_path(file, p, least, 0);
  return kOk;
}

}  // namespace uptier::tools
