#include "tools/line_profile.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "profile/algebra/fold_inlined.h"
#include "tools/shortened.h"

namespace uptier::tools {
namespace {

uint64_t executions_of(const MethodProfile& m, uint32_t block) {
  const std::optional<Counted> count = block_count(m, block);
  return count ? count->estimate : 0;
}

}  // namespace

Result<LineProfile> LineProfile::of(const std::string& file, const ProfileFile& profile,
                                    const ModuleLines& lines) {
  LineProfile made;
  made.lines_ = &lines;
  const TimeProfile& time = profile.calls.time;
  made.ns_ = static_cast<double>(time.sampled_ns);
  std::map<MethodKey, double> own_ns;
  for (const auto& [frame, t] : time.by_frame()) {
    if (frame.place == TimePlace::kMethod) own_ns[frame.method] = static_cast<double>(t.own_ns);
  }
  const profile::FoldedMethods folded = profile::fold_inlined(profile.profile);
  bool any = false;
  for (uint32_t f = 0; f < lines.bodies().size(); ++f) {
    const MethodProfile* m = whole_profile_of(folded, profile.profile, lines.bodies()[f]);
    if (m == nullptr) continue;
    any = true;
    std::map<std::pair<std::string, uint32_t>, uint64_t> most;  // executions in this function
    std::vector<LineWeight>& weights = made.weights_[m->key];
    std::map<const dwarf::Row*, size_t> of_row;  // in `weights`
    double all = 0;
    for (const LinePart& part : lines.parts(f)) {
      const uint64_t executions = executions_of(*m, part.block);
      if (executions == 0) continue;
      const double operations = static_cast<double>(executions) * part.operations;
      std::vector<dwarf::SourceFrame> frames = lines.source().at(part.offset);
      HotLine& line = made.by_line_[{frames[0].file, frames[0].line}];
      line.file = frames[0].file;
      line.line = frames[0].line;
      if (line.operations < 2 * operations || line.function.empty()) {
        line.function = frames[0].function;
      }
      line.operations += operations;
      uint64_t& highest = most[{line.file, line.line}];
      highest = std::max(highest, executions);
      all += operations;
      const auto [place, fresh] = of_row.try_emplace(
          lines.source().map().row(part.offset - lines.source().code_begin()), weights.size());
      if (fresh) weights.push_back({std::move(frames), 0});
      weights[place->second].operations += operations;
    }
    for (const auto& [line, executions] : most) made.by_line_[line].executions += executions;
    made.operations_ += all;
    const auto timed = own_ns.find(m->key);
    if (timed != own_ns.end() && all > 0) {
      for (const LineWeight& w : weights) {
        made.by_line_[{w.frames[0].file, w.frames[0].line}].ns +=
            timed->second * w.operations / all;
      }
    }
    std::ranges::stable_sort(weights, std::greater<>{}, &LineWeight::operations);
  }
  if (!any) {
    return Error{ErrorCode::kNotFound,
                 file + ": none of its methods is in the module, or their code is other code"};
  }
  return made;
}

std::vector<HotLine> LineProfile::hottest() const {
  std::vector<HotLine> list;
  for (const auto& [place, line] : by_line_) list.push_back(line);
  std::ranges::stable_sort(list, [](const HotLine& a, const HotLine& b) {
    return a.ns != b.ns ? a.ns > b.ns : a.operations > b.operations;
  });
  return list;
}

const std::vector<LineWeight>& LineProfile::weights(const MethodKey& key) const {
  static const std::vector<LineWeight> kNone;
  const auto at = weights_.find(key);
  return at == weights_.end() ? kNone : at->second;
}

void print_lines(const LineProfile& lines, uint64_t top) {
  const std::vector<HotLine> list = lines.hottest();
  const size_t count = top == 0 ? list.size() : std::min<size_t>(top, list.size());
  const bool timed = lines.ns() > 0;
  std::printf("%s%8s %14s  %-24s %s\n", timed ? "    time " : "", "share", "executions", "function",
              "line");
  for (size_t i = 0; i < count; ++i) {
    const HotLine& l = list[i];
    if (timed) std::printf("%7.2f%% ", 100 * l.ns / lines.ns());
    std::printf("%7.2f%% %14llu  %-24s %s:%u\n",
                lines.operations() > 0 ? 100 * l.operations / lines.operations() : 0.0,
                static_cast<unsigned long long>(l.executions), shortened(l.function, 24).c_str(),
                l.file.c_str(), l.line);
  }
  std::puts("share: of all executed operations");
  if (timed) std::puts("time: of each function, divided among its lines by their operations");
}

std::string lines_json(const LineProfile& lines) {
  using nlohmann::ordered_json;
  ordered_json list = ordered_json::array();
  for (const HotLine& l : lines.hottest()) {
    list.push_back({{"file", l.file},
                    {"line", l.line},
                    {"function", l.function},
                    {"executions", l.executions},
                    {"operations", l.operations},
                    {"ns", l.ns}});
  }
  const ordered_json all = {
      {"operations", lines.operations()}, {"ns", lines.ns()}, {"lines", std::move(list)}};
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace uptier::tools
