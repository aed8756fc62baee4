// uptier profile show --timeline and --log: when code came into service, and the
// decisions, for each of the last runs.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ranges>

#include "profile/upf/file.h"
#include "profile/upf/read.h"
#include "tiering/saved/mapped_file.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/profile_commands.h"
#include "tools/shortened.h"

namespace uptier::tools {
namespace {

using profile::Timeline;

double ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

std::string what(const Timeline::Version& v) {
  std::string text = tier_name(v.tier);
  if (v.copy == Copy::kInstrumented) text += ", instrumented";
  if (v.loop != 0) text += ", at loop " + std::to_string(v.loop - 1);
  return text;
}

// A run that has left something.
struct Run {
  uint64_t time = 0;
  std::string log;
  Timeline timeline;
};

using Versions = std::vector<const Timeline::Version*>;

Versions in_order(const Timeline& t) {
  Versions versions;
  for (const Timeline::Version& v : t.versions) versions.push_back(&v);
  std::ranges::stable_sort(versions, {}, &Timeline::Version::from_ns);
  return versions;
}

std::string title(const std::vector<Run>& runs, size_t i) {
  return "run " + std::to_string(i + 1) + " of " + std::to_string(runs.size()) + ", ended " +
         time_text(runs[i].time);
}

// As many as a file has that was written at once; some may have been counted since.
constexpr ptrdiff_t kMostRuns = profile::kPastRuns + 1;

// Reads the records of the file's last runs, the oldest first; `wanted` selects those with something to
// show. If there is none, returns an exit code.
int read_runs(const std::string& path, bool (*wanted)(const Run&), const char* what,
              std::vector<Run>& runs) {
  Result<tiering::MappedFile> mapped = tiering::MappedFile::open(path);
  if (!mapped) return fail(kFailed, mapped.error().message);
  // Opening the file as a profile prints its problems.
  ProfileFile file;
  if (int code = open_profile(path, file); code != kOk) return code;
  if (looks_like_profile(mapped->bytes())) {
    profile::UpfReader reader(mapped->bytes());
    const size_t before = reader.warnings().size();
    for (const auto& segment : reader.segments()) {
      for (const profile::RunRecord& r : reader.runs(segment)) {
        runs.push_back({r.time, reader.log(r), reader.timeline(r)});
      }
    }
    for (size_t i = before; i < reader.warnings().size(); ++i) {
      fail(kOk, path + ": " + reader.warnings()[i]);
    }
  }
  std::erase_if(runs, [&](const Run& run) { return !wanted(run); });
  std::ranges::stable_sort(runs, {}, &Run::time);
  if (std::ssize(runs) > kMostRuns) runs.erase(runs.begin(), runs.end() - kMostRuns);
  return runs.empty() ? fail(kFailed, path + ": no run has saved its " + what + " here") : int{kOk};
}

void print_text(const std::string& title, const Timeline& t, const Versions& versions) {
  std::printf("%s, %.3f ms long\n%12s %12s  %-32s %9s %11s  %s\n", title.c_str(), ms(t.length_ns),
              "from ms", "to ms", "method", "bytes", "compile ms", "code");
  for (const Timeline::Version* v : versions) {
    char to[32] = "-";
    if (v->to_ns != 0) std::snprintf(to, sizeof to, "%.3f", ms(v->to_ns));
    std::printf("%12.3f %12s  %-32s %9" PRIu64 " %11.3f  %s\n", ms(v->from_ns), to,
                shortened(t.methods[v->method].name, 32).c_str(), v->code_bytes, ms(v->compile_ns),
                what(*v).c_str());
  }
}

using nlohmann::ordered_json;

ordered_json point_json(uint64_t time, const Timeline& t, const Versions& versions) {
  ordered_json list = ordered_json::array();
  for (const Timeline::Version* v : versions) {
    list.push_back({{"method", t.methods[v->method].name},
                    {"tier", tier_name(v->tier)},
                    {"copy", copy_name(v->copy)},
                    {"osr_loop", v->loop == 0 ? ordered_json() : ordered_json(v->loop - 1)},
                    {"from_ns", v->from_ns},
                    {"to_ns", v->to_ns == 0 ? ordered_json() : ordered_json(v->to_ns)},
                    {"code_bytes", v->code_bytes},
                    {"compile_ns", v->compile_ns}});
  }
  return {{"time", time},
          {"length_ns", t.length_ns},
          {"left_out", t.left_out},
          {"versions", std::move(list)}};
}

}  // namespace

profile::Timeline last_timeline(const std::string& path, std::vector<std::string>& warnings) {
  Timeline latest;
  Result<tiering::MappedFile> mapped = tiering::MappedFile::open(path);
  if (!mapped || !looks_like_profile(mapped->bytes())) return latest;
  profile::UpfReader reader(mapped->bytes());
  const size_t before = reader.warnings().size();
  uint64_t time = 0;
  for (const auto& segment : reader.segments()) {
    if (segment.timeline.empty() || segment.info.time < time) continue;
    latest = reader.timeline(segment);
    time = segment.info.time;
  }
  warnings.insert(warnings.end(), reader.warnings().begin() + static_cast<ptrdiff_t>(before),
                  reader.warnings().end());
  return latest;
}

int profile_show_timeline(const std::string& path, bool json) {
  std::vector<Run> runs;
  const auto has_timeline = [](const Run& run) { return !run.timeline.empty(); };
  if (int code = read_runs(path, has_timeline, "timeline", runs); code != kOk) return code;
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < runs.size(); ++i) {
    const Versions versions = in_order(runs[i].timeline);
    if (json) {
      list.push_back(point_json(runs[i].time, runs[i].timeline, versions));
      continue;
    }
    if (i > 0) std::printf("\n");
    print_text(title(runs, i), runs[i].timeline, versions);
  }
  return json ? print_json({{"runs", std::move(list)}}) : int{kOk};
}

int profile_show_log(const std::string& path, bool json) {
  std::vector<Run> runs;
  const auto has_log = [](const Run& run) { return !run.log.empty(); };
  if (int code = read_runs(path, has_log, "log", runs); code != kOk) return code;
  if (json) {
    ordered_json list = ordered_json::array();
    for (const Run& run : runs) list.push_back({{"time", run.time}, {"log", run.log}});
    return print_json({{"runs", std::move(list)}});
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    std::printf("%s# %s\n", i > 0 ? "\n" : "", title(runs, i).c_str());
    std::fwrite(runs[i].log.data(), 1, runs[i].log.size(), stdout);
  }
  return kOk;
}

}  // namespace uptier::tools
