#include "tools/line_frames.h"

#include <algorithm>
#include <map>

#include "tools/profile_top.h"

namespace uptier::tools {
namespace {

// Frames are separated by semicolons, and the number comes after the last space.
std::string folded_frame(std::string name) {
  std::ranges::replace(name, ';', '_');
  std::ranges::replace(name, ' ', '_');
  return name;
}

void add_frames(const LineWeight& w, std::string& stack) {
  for (auto f = w.frames.rbegin(); f != w.frames.rend(); ++f) {
    stack += (stack.empty() ? "" : ";") + folded_frame(line_frame(*f));
  }
}

// Several rows may have the same frames: their sums are one stack.
using Stacks = std::map<std::string, uint64_t>;

void add_path(const PathTime& path, const std::string& above, const Profile& names,
              const LineProfile& lines, Stacks& out) {
  const std::string stack =
      above + (above.empty() ? "" : ";") + folded_frame(frame_name(names, path.frame));
  std::vector<LineTime> parts;
  if (path.frame.place == TimePlace::kMethod) {
    parts = line_times(lines, path.frame.method, path.ns);
  }
  for (const LineTime& part : parts) {
    std::string whole = above;
    add_frames(*part.weight, whole);
    out[whole] += part.ns;
  }
  if (parts.empty()) out[stack] += path.ns;
  for (const PathTime& callee : path.callees) add_path(callee, stack, names, lines, out);
}

}  // namespace

std::string line_frame(const dwarf::SourceFrame& frame) {
  return (frame.function.empty() ? frame.file : frame.function) + ":" + std::to_string(frame.line);
}

std::vector<LineTime> line_times(const LineProfile& lines, const MethodKey& method, uint64_t ns) {
  std::vector<LineTime> parts;
  const std::vector<LineWeight>& weights = lines.weights(method);
  double all = 0, before = 0;
  for (const LineWeight& w : weights) all += w.operations;
  uint64_t given = 0;
  for (const LineWeight& w : weights) {
    before += w.operations;
    const bool last = &w == &weights.back();
    const uint64_t until =
        last ? ns : static_cast<uint64_t>(std::min(before / all, 1.0) * static_cast<double>(ns));
    if (until > given) parts.push_back({&w, until - given});
    given = std::max(given, until);
  }
  return parts;
}

std::string folded_lines(const ProfileFile& file, const LineProfile& lines, bool by_time) {
  Stacks stacks;
  if (by_time) {
    for (const PathTime& outermost : file.calls.time.root.callees) {
      add_path(outermost, "", file.profile, lines, stacks);
    }
  } else {
    for (const auto& [key, m] : file.profile.methods) {
      for (const LineWeight& w : lines.weights(key)) {
        std::string stack;
        add_frames(w, stack);
        stacks[stack] += static_cast<uint64_t>(w.operations);
      }
    }
  }
  std::string out;
  for (const auto& [stack, n] : stacks) {
    const uint64_t shown = by_time ? (n + 500) / 1000 : n;
    if (shown != 0) out += stack + " " + std::to_string(shown) + "\n";
  }
  return out;
}

std::vector<profile::PprofPart> PprofLines::parts(const MethodKey& method, SiteId block) const {
  std::vector<profile::PprofPart> parts;
  const int64_t function = module_.find(method);
  if (function < 0) return parts;
  const std::vector<LinePart>& all = module_.parts(static_cast<uint32_t>(function));
  for (const LinePart& part : std::ranges::equal_range(all, block, {}, &LinePart::block)) {
    profile::PprofPart p{{}, part.operations};
    for (const dwarf::SourceFrame& f : module_.source().at(part.offset)) {
      p.places.push_back({f.function, f.file, f.line});
    }
    parts.push_back(std::move(p));
  }
  return parts;
}

std::vector<profile::PprofPlace> PprofLines::call(const MethodKey& method, SiteId site) const {
  std::vector<profile::PprofPlace> places;
  const int64_t function = module_.find(method);
  if (function < 0) return places;
  const auto& calls = module_.bodies()[static_cast<size_t>(function)].calls;
  const auto at = std::ranges::find(calls, site, &BodyGraph::Call::site);
  if (at == calls.end()) return places;
  for (const dwarf::SourceFrame& f : module_.source().at(at->location)) {
    if (f.line != 0 && !f.file.empty()) places.push_back({f.function, f.file, f.line});
  }
  return places;
}

std::optional<profile::PprofPlace> PprofLines::begin(const MethodKey& method) const {
  const int64_t function = module_.find(method);
  if (function < 0) return std::nullopt;
  const std::vector<dwarf::SourceFrame> at = module_.place_of(static_cast<uint32_t>(function));
  if (at.empty() || at.back().file.empty()) return std::nullopt;
  const std::string& name = at.back().function;
  return profile::PprofPlace{
      name.empty() ? module_.bodies()[static_cast<size_t>(function)].name : name, at.back().file,
      at.back().line};
}

}  // namespace uptier::tools
