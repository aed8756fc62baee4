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
#include "tools/profile_changes.h"
#include "tools/profile_commands.h"

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

int draw(const ProfileOverlapCommand& c, const ProfileChanges& changes) {
  const Profile& a = changes.before.sum;
  const Profile& b = changes.after.sum;
  OverlapReport r = changes.overlap;
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
  std::fprintf(c.sides.json ? stderr : stdout, "%zu pictures in %s\n", drawn, c.dot.c_str());
  return kOk;
}

}  // namespace

int profile_overlap(const ProfileOverlapCommand& c) {
  ProfileChanges changes;
  if (int code = find_changes(c.sides, changes); code != kOk) {
    return exit_code(c.sides, changes, code);
  }
  if (c.sides.json) {
    nlohmann::ordered_json j = overlap_json(changes.overlap);
    j.update(changes_json(c.sides, changes));
    print_json(j);
  } else if (c.sides.markdown) {
    std::printf("Overlap: **%.2f %%**\n\n", 100 * changes.overlap.program.value);
    print_changes_as_markdown(changes, c.top);
  } else {
    print_overlap(changes.overlap);
    print_changes_in_short(changes);
  }
  const int code = c.dot.empty() ? int{kOk} : draw(c, changes);
  return exit_code(c.sides, changes, code);
}

}  // namespace uptier::tools
