// uptier profile promote: a candidate becomes the profile in use, if it passes the gates.
//
//   whole     it can be read, and nothing in it is damaged
//   runs      it sums up at least so many
//   samples   sampled calls and bursts, at least so many
//   overlap   with the profile in use, at least so much; there is none to compare with at first
//
// TO exists at every moment, as the old or the new profile. The old one gets another name as well (TO.1;
// TO.1 becomes TO.2, up to `keep`). The new one is written beside it and renamed over it, under the lock
// that runs take to write TO. Rolling back renames TO.1, and keeps TO as TO.rolled-back.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "profile/base/numbers.h"
#include "profile/upf/file.h"
#include "tiering/saved/file_lock.h"
#include "tiering/saved/mapped_file.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/profile_commands.h"
#include "tools/streams.h"
#include "uptier/options.h"

namespace uptier::tools {
namespace {

// Runs take this lock before they replace an existing file.
constexpr auto kNone = tiering::FileLock::Missing::kNone;

// Returns an exit code; if another process holds the file, prints a message.
int check_held(const tiering::FileLock& held) {
  const Status s = held.status();
  const bool there = s.ok() || s.error().code == ErrorCode::kNotFound;
  return there ? int{kOk} : fail(kFailed, s.error().message);
}

struct Gate {
  std::string name;
  std::string flag;  // that sets the threshold
  double value = 0;
  double threshold = 0;
  std::string skipped;  // why it was not asked, or ""

  bool passed() const { return !skipped.empty() || value >= threshold; }
};

std::string number(double n) {
  char text[32];
  std::snprintf(text, sizeof text,
                n == static_cast<double>(static_cast<uint64_t>(n)) ? "%.0f" : "%.4f", n);
  return text;
}

uint64_t samples_of(const Profile& p) {
  uint64_t sum = 0;
  for (const auto& [key, m] : p.methods) {
    (void)profile::add_saturating(sum, m.sampled_calls);
    (void)profile::add_saturating(sum, m.bursts);
  }
  return sum;
}

bool is_whole(const ProfileFile& f) { return f.skipped == 0 && !f.truncated; }

std::vector<Gate> gates_of(const ProfilePromoteCommand& c, const ProfileFile& candidate,
                           const ProfileFile* current) {
  std::vector<Gate> gates;
  gates.push_back({"whole", "", is_whole(candidate) ? 1.0 : 0.0, 1, ""});
  gates.push_back({"runs", "--min-runs", static_cast<double>(candidate.info.runs),
                   static_cast<double>(c.min_runs), ""});
  gates.push_back({"samples", "--min-samples", static_cast<double>(samples_of(candidate.profile)),
                   static_cast<double>(c.min_samples), ""});
  Gate alike{"overlap", "--min-overlap", 0, c.min_overlap, ""};
  if (current == nullptr) {
    alike.skipped = "there is no " + c.to + " yet";
  } else {
    alike.value = overlap(current->profile, candidate.profile);
  }
  gates.push_back(alike);
  return gates;
}

std::string generation(const std::string& to, uint64_t n) { return to + "." + std::to_string(n); }

bool exists(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0;
}

Status failed(const std::string& path, const char* what) {
  return Error{ErrorCode::kIo, path + ": " + what + ": " + std::strerror(errno)};
}

// A second name for a file, or a copy of it where the file system has no links.
Status keep_as(const std::string& path, const std::string& name) {
  if (::unlink(name.c_str()) != 0 && errno != ENOENT) return failed(name, "cannot be removed");
  if (::link(path.c_str(), name.c_str()) == 0) return {};
  Result<tiering::MappedFile> file = tiering::MappedFile::open(path);
  if (!file) return file.error();
  return profile::replace_file(name, file->bytes());
}

// TO becomes TO.1, TO.1 becomes TO.2, ...; the one beyond `keep` goes. TO stays where it is, too.
Status rotate(const std::string& to, uint64_t keep) {
  if (keep == 0 || !exists(to)) return {};
  for (uint64_t n = keep; n > 1; --n) {
    const std::string from = generation(to, n - 1), name = generation(to, n);
    if (!exists(from)) continue;
    if (::rename(from.c_str(), name.c_str()) != 0) return failed(from, "cannot be renamed");
  }
  return keep_as(to, generation(to, 1));
}

Status install(const ProfilePromoteCommand& c, const ProfileFile& candidate) {
  Result<tiering::MappedFile> file = tiering::MappedFile::open(c.candidate);
  if (!file) return file.error();
  std::vector<std::byte> made;
  if (!looks_like_profile(file->bytes())) { made = profile_to_file(candidate); }
  if (Status s = rotate(c.to, c.keep); !s) return s;
  return profile::replace_file(c.to,
                               made.empty() ? file->bytes() : std::span<const std::byte>(made));
}

Status roll_back(const std::string& to) {
  if (exists(to)) {
    if (Status s = keep_as(to, to + ".rolled-back"); !s) return s;
  }
  const std::string last = generation(to, 1);
  if (::rename(last.c_str(), to.c_str()) != 0) return failed(last, "cannot be renamed");
  for (uint64_t n = 2; exists(generation(to, n)); ++n) {
    const std::string from = generation(to, n), name = generation(to, n - 1);
    if (::rename(from.c_str(), name.c_str()) != 0) return failed(from, "cannot be renamed");
  }
  return {};
}

void tell_gates(const ProfilePromoteCommand& c, const std::vector<Gate>& gates, bool pass) {
  if (c.json) {
    nlohmann::json j = {{"candidate", c.candidate},       {"to", c.to},
                        {"promoted", pass && !c.dry_run}, {"passed", pass},
                        {"dry_run", c.dry_run},           {"gates", nlohmann::json::array()}};
    for (const Gate& g : gates) {
      nlohmann::json value = g.skipped.empty() ? nlohmann::json(g.value) : nlohmann::json();
      j["gates"].push_back(
          {{"name", g.name}, {"value", value}, {"threshold", g.threshold}, {"passed", g.passed()}});
    }
    std::printf("%s\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  for (const Gate& g : gates) {
    if (!g.skipped.empty()) {
      std::printf("gate %-8s not asked: %s\n", g.name.c_str(), g.skipped.c_str());
      continue;
    }
    std::printf("gate %-8s %s: %s, at least %s wanted%s%s%s\n", g.name.c_str(),
                g.passed() ? "passed" : "FAILED", number(g.value).c_str(),
                number(g.threshold).c_str(), g.flag.empty() ? "" : " (", g.flag.c_str(),
                g.flag.empty() ? "" : ")");
  }
  std::printf("%s\n", !pass       ? (c.to + " is not changed").c_str()
                      : c.dry_run ? (c.candidate + " would become " + c.to).c_str()
                                  : (c.candidate + " is " + c.to + " now").c_str());
}

int promote_back(const ProfilePromoteCommand& c) {
  const std::string last = generation(c.to, 1);
  const tiering::FileLock held(c.to, Options{}.profile_lock_ms, kNone);
  if (int code = check_held(held); code != kOk) return code;
  Result<ProfileFile> previous = load_profile(last);
  if (!previous) return fail(kFailed, previous.error().message);
  if (!is_whole(*previous)) return fail(kCorrupt, last + ": it is damaged, so it is not restored");
  if (!c.dry_run) {
    if (Status s = roll_back(c.to); !s) return fail(kFailed, s.error().message);
  }
  const char* now = c.dry_run ? "would be" : "is";
  if (c.json) {
    nlohmann::json j = {
        {"to", c.to}, {"from", last}, {"rolled_back", !c.dry_run}, {"dry_run", c.dry_run}};
    std::printf("%s\n", j.dump(2).c_str());
  } else {
    std::printf("%s %s the former %s; %s.rolled-back has the replaced profile\n", c.to.c_str(), now,
                last.c_str(), c.to.c_str());
  }
  return kOk;
}

}  // namespace

int profile_promote(const ProfilePromoteCommand& command) {
  ProfilePromoteCommand c = command;
  if (!c.candidate.empty()) c.candidate = seekable(c.candidate);  // is read twice
  if (c.roll_back) return promote_back(c);
  if (c.candidate.empty()) return fail(kUsage, "promote needs a candidate, or --roll-back");
  if (c.to == kStream) return fail(kUsage, "--to wants a file");
  ProfileFile candidate;
  if (int code = open_profile(c.candidate, candidate); code != kOk) return code;
  const tiering::FileLock held(c.to, Options{}.profile_lock_ms, kNone);
  if (int code = check_held(held); code != kOk) return code;
  ProfileFile current;
  const bool is_first = !held.status().ok();
  if (!is_first) {
    if (int code = open_profile(c.to, current); code != kOk) return code;
  }
  const std::vector<Gate> gates = gates_of(c, candidate, is_first ? nullptr : &current);
  bool pass = true;
  for (const Gate& g : gates) pass = pass && g.passed();
  if (pass && !c.dry_run) {
    if (Status s = install(c, candidate); !s) return fail(kFailed, s.error().message);
  }
  tell_gates(command, gates, pass);
  return pass ? kOk : kFailed;
}

}  // namespace uptier::tools
