#include "tools/profile_changes.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "profile/algebra/same_names.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/profile_commands.h"
#include "tools/profile_top.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

constexpr const char* kTime = "time";
constexpr const char* kExecutions = "executions";

// Sets the files of both sides; returns what is wrong with the words, or "".
std::string take_words(const ChangesCommand& c, std::vector<std::string>& before,
                       std::vector<std::string>& after) {
  const bool several = !c.before.empty() || !c.after.empty();
  if (several && !c.a.empty()) {
    return c.a + ": files are given as A and B, or after --before and --after, not as both";
  }
  before = several ? c.before : std::vector<std::string>{c.a};
  after = several ? c.after : std::vector<std::string>{c.b};
  if (several && (before.empty() || after.empty())) {
    return std::string(before.empty() ? "--before" : "--after") +
           " is missing: each side needs one file at least";
  }
  if (!several && (c.a.empty() || c.b.empty())) {
    return "two files are needed: A and B, or --before FILES --after FILES";
  }
  return "";
}

int read_side(const std::vector<std::string>& paths, bool gate, ComparedSide& side) {
  for (const std::string& path : paths) {
    ProfileFile file;
    if (int code = open_profile(path, file); code != kOk) return code;
    if (gate && file.profile.methods.empty() && file.calls.time.empty()) {
      return fail(kFailed,
                  path + ": the profile is empty, so that nothing can be said about changes");
    }
    side.files.push_back(std::move(file));
  }
  return kOk;
}

// Gives all files the keys of the first.
uint64_t give_same_keys(ProfileChanges& changes) {
  const Profile& first = changes.before.files.front().profile;
  uint64_t most = 0;
  for (ComparedSide* side : {&changes.before, &changes.after}) {
    for (ProfileFile& file : side->files) {
      if (&file.profile == &first) continue;
      const profile::NewKeys keys = profile::same_names(file.profile, first);
      if (keys.empty()) continue;
      profile::rename_methods(file.profile, keys);
      profile::rename_methods(file.calls.time, keys);
      most = std::max<uint64_t>(most, keys.size());
    }
  }
  return most;
}

double runs_of(const ProfileInfo& info) {
  return static_cast<double>(info.weight) / static_cast<double>(ProfileInfo::kRunWeight);
}

double seconds_of(const TimeProfile& t) { return static_cast<double>(t.asked_ns) / 1e9; }

std::vector<profile::RunShares> shares_of(const ComparedSide& side, bool by_time) {
  std::vector<profile::RunShares> runs;
  for (const ProfileFile& f : side.files) {
    runs.push_back(
        by_time ? profile::time_shares(f.calls.time, runs_of(f.info))
                : profile::count_shares(f.profile, runs_of(f.info), seconds_of(f.calls.time)));
  }
  return runs;
}

bool has_time(const ComparedSide& side) {
  return std::ranges::all_of(side.files,
                             [](const ProfileFile& f) { return f.calls.time.sampled_ns != 0; });
}

MeasuredChanges measure(const ProfileChanges& changes, const char* by, double error) {
  const bool by_time = by == kTime;
  profile::RunChanges found = profile::run_changes(shares_of(changes.before, by_time),
                                                   shares_of(changes.after, by_time), error);
  MeasuredChanges m{by, error, std::move(found.items), found.tested, 0};
  std::ranges::stable_sort(m.items, [](const auto& x, const auto& y) {
    if (x.change.beyond != y.change.beyond) return x.change.beyond;
    return std::fabs(x.change.moved()) > std::fabs(y.change.moved());
  });
  m.beyond = static_cast<size_t>(
      std::ranges::count_if(m.items, [](const auto& item) { return item.change.beyond; }));
  return m;
}

std::vector<std::string> only_in(const Profile& p, const Profile& other) {
  std::vector<std::string> names;
  for (const auto& [key, m] : p.methods) {
    if (other.find(key) == nullptr) names.push_back(frame_name(p, {TimePlace::kMethod, key}));
  }
  return names;
}

bool reaches(const ChangesCommand& c, const ProfileChanges& changes) {
  const double least = c.threshold.value_or(0) / 100;
  for (const MeasuredChanges& m : changes.measured) {
    for (const profile::NamedChange& item : m.items) {
      if (item.change.beyond && std::fabs(item.change.moved()) >= least) return true;
    }
  }
  return false;
}

nlohmann::ordered_json item_json(const ProfileChanges& changes, const profile::NamedChange& item) {
  nlohmann::ordered_json j = {{"name", changes.name(item.frame)},
                              {"module_key", item.frame.method.module_key},
                              {"function_index", item.frame.method.function_index}};
  if (item.frame.place != TimePlace::kMethod) j["place"] = time_place_name(item.frame.place);
  j["share_a"] = item.change.before;
  j["share_b"] = item.change.after;
  j["moved"] = item.change.moved();
  j["noise"] = item.change.noise;
  j["beyond"] = item.change.beyond;
  return j;
}

}  // namespace

std::string ProfileChanges::name(const PathFrame& f) const {
  const bool here = before.sum.find(f.method) != nullptr;
  return frame_name(here ? before.sum : after.sum, f);
}

const MethodOverlap* ProfileChanges::alike(const PathFrame& f) const {
  if (f.place != TimePlace::kMethod) return nullptr;
  const auto at = std::ranges::lower_bound(overlap.methods, f.method, {}, &MethodOverlap::key);
  return at != overlap.methods.end() && at->key == f.method ? &*at : nullptr;
}

int find_changes(const ChangesCommand& c, ProfileChanges& changes) {
  std::vector<std::string> before, after;
  if (const std::string wrong = take_words(c, before, after); !wrong.empty()) {
    return fail(kUsage, wrong);
  }
  std::vector<std::string> all = before;
  all.insert(all.end(), after.begin(), after.end());
  if (Status s = check_stdin(all); !s) return fail(kUsage, s.error().message);
  if (int code = read_side(before, c.threshold.has_value(), changes.before); code != kOk)
    return code;
  if (int code = read_side(after, c.threshold.has_value(), changes.after); code != kOk) return code;
  const bool timed = has_time(changes.before) && has_time(changes.after);
  if (c.by == kTime && !timed) {
    return fail(kFailed, "--by=time: " + (has_time(changes.before) ? after : before).front() +
                             ": has no time: its runs did not sample stacks (run --sample)");
  }
  changes.renamed = give_same_keys(changes);
  for (ComparedSide* side : {&changes.before, &changes.after}) {
    for (const ProfileFile& f : side->files) (void)merge(side->sum, f.profile);
  }
  changes.overlap = compare(changes.before.sum, changes.after.sum);
  std::vector<const char*> measures;
  if (timed && c.by != kExecutions) measures.push_back(kTime);
  if (c.by != kTime) measures.push_back(kExecutions);
  for (const char* by : measures) {
    const double error = profile::kFamilyError / static_cast<double>(measures.size());
    changes.measured.push_back(measure(changes, by, error));
  }
  changes.added = only_in(changes.after.sum, changes.before.sum);
  changes.gone = only_in(changes.before.sum, changes.after.sum);
  changes.changed = reaches(c, changes);
  return kOk;
}

int exit_code(const ChangesCommand& c, const ProfileChanges& changes, int code) {
  if (!c.threshold) return code;
  if (code == kFailed) return kUsage;
  return code == kOk && changes.changed ? int{kFailed} : code;
}

nlohmann::ordered_json changes_json(const ChangesCommand& c, const ProfileChanges& changes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MeasuredChanges& m : changes.measured) {
    nlohmann::ordered_json methods = nlohmann::ordered_json::array();
    for (const profile::NamedChange& item : m.items) methods.push_back(item_json(changes, item));
    list.push_back({{"by", m.by},
                    {"error", m.error},
                    {"files_a", changes.before.files.size()},
                    {"files_b", changes.after.files.size()},
                    {"tested", m.tested},
                    {"beyond", m.beyond},
                    {"methods", std::move(methods)}});
  }
  nlohmann::ordered_json j = {{"changed", changes.changed}};
  j["threshold"] = c.threshold ? nlohmann::ordered_json(*c.threshold) : nullptr;
  j["added"] = changes.added;
  j["gone"] = changes.gone;
  j["changes"] = std::move(list);
  return j;
}

}  // namespace uptier::tools
