// uptier profile show --timeline: which code came into service when, in the run that was last.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ranges>

#include "profile/upf_file.h"
#include "profile/upf_read.h"
#include "tiering/mapped_file.h"
#include "tools/commands.h"
#include "tools/profile_commands.h"

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

void print_text(const Timeline& t, const std::vector<const Timeline::Version*>& versions) {
  std::printf("run of %.3f ms\n%12s %12s  %-32s %9s %11s  %s\n", ms(t.length_ns), "from ms",
              "to ms", "method", "bytes", "compile ms", "code");
  for (const Timeline::Version* v : versions) {
    char to[32] = "-";
    if (v->to_ns != 0) std::snprintf(to, sizeof to, "%.3f", ms(v->to_ns));
    std::printf("%12.3f %12s  %-32.32s %9" PRIu64 " %11.3f  %s\n", ms(v->from_ns), to,
                t.methods[v->method].name.c_str(), v->code_bytes, ms(v->compile_ns),
                what(*v).c_str());
  }
}

void print_json(const Timeline& t, const std::vector<const Timeline::Version*>& versions) {
  using nlohmann::ordered_json;
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
  const ordered_json all = {
      {"length_ns", t.length_ns}, {"left_out", t.left_out}, {"versions", std::move(list)}};
  std::printf("%s\n", all.dump(2).c_str());
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
  ProfileFile file;
  if (int code = open_profile(path, file); code != kOk) return code;
  std::vector<std::string> warnings;
  const Timeline t = last_timeline(path, warnings);
  for (const std::string& w : warnings) {
    std::fprintf(stderr, "uptier: %s: %s\n", path.c_str(), w.c_str());
  }
  if (t.empty()) {
    std::fprintf(stderr, "uptier: %s: no run left its timeline here\n", path.c_str());
    return kFailed;
  }
  std::vector<const Timeline::Version*> versions;
  for (const Timeline::Version& v : t.versions) versions.push_back(&v);
  std::ranges::stable_sort(versions, {}, &Timeline::Version::from_ns);
  json ? print_json(t, versions) : print_text(t, versions);
  return kOk;
}

}  // namespace uptier::tools
