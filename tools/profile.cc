// uptier profile: show, top, check; and how files of any kind are read.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "profile/algebra/algebra.h"
#include "profile/data/text.h"
#include "profile/formats/llvm_text.h"
#include "profile/formats/tsv.h"
#include "profile/trace/read_trace.h"
#include "profile/upf/file.h"
#include "profile/upf/read.h"
#include "profile/upf/trace_info.h"
#include "tiering/saved/mapped_file.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/merge_messages.h"
#include "tools/profile_commands.h"
#include "tools/profile_json.h"
#include "tools/profile_top.h"
#include "tools/shortened.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

using tiering::MappedFile;

Result<ProfileFile> from_trace(std::span<const std::byte> bytes) {
  Result<profile::TraceRead> read = profile::read_trace(bytes);
  if (!read) return read.error();
  TraceProfile* trace = &read->trace;
  ProfileFile file;
  file.warnings = std::move(read->warnings);
  file.skipped = read->damaged;
  file.unknown = trace->skipped;
  file.info = profile::trace_info(bytes, trace->profile);
  file.profile = std::move(trace->profile);
  file.calls = profile::calls_of(*trace);
  file.report = std::move(trace->report);
  file.truncated = trace->truncated;
  return file;
}

Result<ProfileFile> from_text(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (profile::looks_like_tsv(text)) return profile::profile_from_tsv(text);
  bool is_llvm = profile::looks_like_llvm_text(text);
  if (!is_llvm && text.find("uptier-profile") == text.npos) {
    return Error{ErrorCode::kCorruptInput,
                 "neither a profile file, a trace, rows (tsv), nor a profile's or LLVM's text"};
  }
  Result<Profile> p = is_llvm ? profile::profile_from_llvm_text(text) : parse_profile(text);
  if (!p) return p.error();
  ProfileFile file;
  file.profile = std::move(*p);
  return file;
}

// Prints the problems of a file that could be read.
void tell(const std::string& path, const ProfileFile& file) {
  for (const std::string& w : file.warnings) fail(kOk, path + ": " + w);
  if (file.skipped > file.warnings.size()) {
    fail(kOk, path + ": " + std::to_string(file.skipped - file.warnings.size()) + " more of these");
  }
  if (file.unknown != 0) {
    fail(kOk, path + ": " + std::to_string(file.unknown) +
                  " chunks or events of an unknown type or version were passed over");
  }
  if (file.truncated) fail(kOk, path + ": it ends early; the part before was read");
  for (const std::string& what : merge_messages(file.report)) fail(kOk, path + ": " + what);
}

unsigned long long ull(uint64_t n) { return n; }

void print_info(const ProfileInfo& i) {
  std::printf("runs      %llu (weight %.3f), uploads known %zu, forgotten %llu\n", ull(i.runs),
              static_cast<double>(i.weight) / ProfileInfo::kRunWeight, i.uploads.size(),
              ull(i.forgotten));
  std::printf("latest    %s on %s, %s\n", time_text(i.time).c_str(),
              i.host.empty() ? "-" : i.host.c_str(), i.engine.empty() ? "-" : i.engine.c_str());
  std::printf("schedule  interval %llu%s%s\nmodules  ", ull(i.interval),
              i.schedule.empty() ? "" : ", ", i.schedule.c_str());
  for (uint64_t m : i.modules) std::printf(" %s", profile::hex(m).c_str());
  std::printf("\n");
}

void print_summary(const Profile& p, std::vector<double> percents) {
  std::ranges::sort(percents);
  for (double& percent : percents) percent /= 100;
  profile::Summary s = percents.empty() ? profile::summarize(p) : profile::summarize(p, percents);
  std::printf(
      "methods   %llu; blocks %llu, %llu of them executed; executions %.6Lg, at most %llu\n",
      ull(s.methods), ull(s.sites), ull(s.seen), s.total, ull(s.greatest));
  for (const profile::Percentile& c : s.percentiles) {
    if (c.sites == 0) continue;
    std::printf("  %6.2f %% of executions in %llu blocks of at least %llu\n", 100 * c.cutoff,
                ull(c.sites), ull(c.least));
  }
}

}  // namespace

bool is_trace(std::span<const std::byte> bytes) {
  uint16_t type = 0;
  if (bytes.size() < 6 || std::memcmp(bytes.data(), "IIDB", 4) != 0) return false;
  std::memcpy(&type, bytes.data() + 4, sizeof type);
  return type == 0x5500;
}

std::string time_text(uint64_t time) {
  auto seconds = static_cast<std::time_t>(time);
  std::tm parts = {};
  char text[64];
  if (time == 0 || gmtime_r(&seconds, &parts) == nullptr) return "-";
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

Result<ProfileFile> load_profile(const std::string& path) {
  Result<MappedFile> file = MappedFile::open(seekable(path));
  if (!file) return file.error();
  std::span<const std::byte> bytes = file->bytes();
  Result<ProfileFile> read = is_trace(bytes)             ? from_trace(bytes)
                             : looks_like_profile(bytes) ? profile_from_file(bytes)
                                                         : from_text(bytes);
  // A trace followed by segments is a file, too.
  const bool odd = !read || read->skipped != 0;
  if (odd && is_trace(bytes)) {
    Result<ProfileFile> file = profile_from_file(bytes);
    if (file && !file->info.uploads.empty() && file->warnings.empty()) return file;
  }
  if (read) return read;
  return Error{ErrorCode::kCorruptInput, path + ": " + read.error().message};
}

int write_profile(const std::string& path, const ProfileFile& file) {
  Status s = write_output(path, profile_to_file(file));
  return s ? int{kOk} : fail(kFailed, s.error().message);
}

bool is_taken(const std::string& out) {
  if (out == kStream) fail(kUsage, "the table goes to stdout: -o needs a file");
  return out == kStream;
}

int open_profile(const std::string& path, ProfileFile& file) {
  Result<ProfileFile> read = load_profile(path);
  if (!read) return fail(read.error());
  file = std::move(*read);
  tell(path, file);
  return kOk;
}

namespace {

// Keeps only the methods with this name, the bodies that are inlined into them, and the places where
// they are inlined. Returns the methods from before.
Profile leave_method(Profile& p, const std::string& name) {
  Profile all;
  all.methods = p.methods;
  std::erase_if(p.methods, [&](const auto& item) { return item.second.name != name; });
  std::erase_if(p.other_code, [&](const auto& item) { return item.second.name != name; });
  std::erase_if(p.inlined, [&](const auto& item) {
    const InlinedKey& key = item.first;
    return !p.methods.contains(key.root) && !p.methods.contains(key.path.back().callee);
  });
  return all;
}

void print_method(Profile p, const Profile& names) {
  const InlinedBodies inlined = std::exchange(p.inlined, {});
  std::fputs((to_text(p) + to_text(inlined, names)).c_str(), stdout);
}

}  // namespace

int profile_show(const ProfileShowCommand& command) {
  ProfileShowCommand c = command;
  if (command.log || command.timeline) c.file = seekable(c.file);  // is read twice
  if (c.log) return profile_show_log(c.file, c.json);
  if (c.calls) return profile_show_calls(c.file, c.top, c.json);
  if (c.order) return profile_show_order(c.file, c.top, c.json);
  if (c.timeline) return profile_show_timeline(c.file, c.json);
  if (c.data) return profile_show_data(c.file, c.json);
  if (c.time) return profile_show_time(c.file, c.least, c.json);
  if (c.lines) return profile_show_lines(c);
  ProfileFile file;
  if (int code = open_profile(c.file, file); code != kOk) return code;
  if (!c.method.empty()) {
    const Profile names = leave_method(file.profile, c.method);
    if (file.profile.methods.empty()) return fail(kFailed, c.file + ": no method " + c.method);
    profile::restrict_to(file.calls, file.profile);
    if (!c.json) print_method(std::move(file.profile), names);
  }
  if (c.json) {
    const std::string text = profile_json(file);
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else if (c.method.empty()) {
    print_info(file.info);
    if (!file.foreign.empty()) {
      std::printf("others    %zu instruments, %zu user data of other tools (show --data)\n",
                  file.foreign.instruments.size(), file.foreign.data.size());
    }
    print_summary(file.profile, c.cutoffs);
    print_top(file, c.top);
  }
  return kOk;
}

int profile_top(const std::string& path, uint64_t n, const std::string& out, bool json) {
  if (is_taken(out)) return kUsage;
  ProfileFile file;
  if (int code = open_profile(path, file); code != kOk) return code;
  if (json) {
    print_json(top_json(file, n));
  } else {
    print_top(file, n);
  }
  if (out.empty()) return kOk;
  file.info.uploads.clear();
  file.profile = profile::top(file.profile, n);
  profile::restrict_to(file.calls, file.profile);
  return write_profile(out, file);
}

int profile_check(const std::vector<std::string>& files, bool json) {
  if (Status s = check_stdin(files); !s) return fail(kUsage, s.error().message);
  int worst = kOk;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& path : files) {
    Result<ProfileFile> read = load_profile(path);
    if (!read) {
      worst = std::max(worst, fail(read.error()));
      list.push_back({{"file", path}, {"state", "unreadable"}, {"error", read.error().message}});
      continue;
    }
    tell(path, *read);
    bool whole = read->skipped == 0 && !read->truncated && read->report.dropped.empty();
    if (!whole) worst = kCorrupt;
    if (json) {
      list.push_back({{"file", path},
                      {"state", whole ? "whole" : "damaged"},
                      {"methods", read->profile.methods.size()},
                      {"runs", read->info.runs},
                      {"warnings", read->warnings}});
      continue;
    }
    std::printf("%s: %s; %zu methods, %llu runs\n", path.c_str(), whole ? "whole" : "damaged",
                read->profile.methods.size(), ull(read->info.runs));
  }
  if (json) print_json({{"files", std::move(list)}});
  return worst;
}

}  // namespace uptier::tools
