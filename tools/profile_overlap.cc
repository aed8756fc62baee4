// uptier profile overlap: how alike two profiles are, and pictures of the methods that differ most.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "profile/upf/file.h"
#include "tools/commands.h"
#include "tools/dot.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/profile_commands.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

// Returns the most that a method contributes to the difference of the programs.
double difference(const MethodOverlap& m) {
  return (1 - m.value) * std::max(m.share_a, m.share_b) + std::fabs(m.share_a - m.share_b);
}

// Makes "01-name.dot"; all characters but letters, digits, '-', '_' and '.' are replaced.
std::string picture_name(size_t rank, const std::string& method) {
  char number[24];
  std::snprintf(number, sizeof number, "%02zu-", rank);
  std::string name = method.substr(0, 80);
  std::ranges::replace_if(
      name,
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; },
      '_');
  return number + name + ".dot";
}

int draw(const ProfileOverlapCommand& c, const Profile& a, const Profile& b, OverlapReport r) {
  std::vector<BodyGraph> bodies;
  if (!c.module.empty()) {
    Result<std::vector<BodyGraph>> read = read_body_graphs(c.module);
    if (!read) return fail(read.error());
    bodies = std::move(*read);
  } else {
    fail(kOk, "no arrows: edges between blocks are known with --module only");
  }
  std::error_code error;
  std::filesystem::create_directories(c.dot, error);
  if (error) return fail(kFailed, c.dot + ": " + error.message());
  std::ranges::stable_sort(r.methods, std::greater<>{}, difference);
  size_t drawn = 0;
  for (const MethodOverlap& m : r.methods) {
    const MethodProfile* first = a.find(m.key);
    const MethodProfile* second = b.find(m.key);
    const bool both = first != nullptr && second != nullptr && !m.mismatched;
    if (drawn == c.top || !both || difference(m) == 0) continue;
    const BodyGraph* body = nullptr;
    for (const BodyGraph& g : bodies) {
      if (profile_of(a, g) == first) body = &g;
    }
    const std::string text = dot_of_blocks(*first, body, second);
    const std::string path = c.dot + "/" + picture_name(++drawn, m.name);
    if (Status s = profile::replace_file(path, std::as_bytes(std::span(text))); !s) {
      return fail(kFailed, s.error().message);
    }
  }
  std::fprintf(c.json ? stderr : stdout, "%zu pictures in %s\n", drawn, c.dot.c_str());
  return kOk;
}

}  // namespace

int profile_overlap(const ProfileOverlapCommand& c) {
  if (Status s = check_stdin({c.a, c.b}); !s) return fail(kUsage, s.error().message);
  ProfileFile first, second;
  if (int code = open_profile(c.a, first); code != kOk) return code;
  if (int code = open_profile(c.b, second); code != kOk) return code;
  OverlapReport r = compare(first.profile, second.profile);
  if (c.json) {
    print_json(overlap_json(r));
  } else {
    print_overlap(r);
  }
  return c.dot.empty() ? int{kOk} : draw(c, first.profile, second.profile, std::move(r));
}

}  // namespace uptier::tools
