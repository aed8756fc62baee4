#include "tools/loop_table.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "profile/data/text.h"
#include "tools/shortened.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

bool ran(const LoopReport& r) { return r.entries > 0 || r.timed > 0; }

std::vector<LoopReport> rows_of(std::span<const LoopReport> loops) {
  std::vector<LoopReport> rows;
  std::copy_if(loops.begin(), loops.end(), std::back_inserter(rows), ran);
  return rows;
}

std::string formatted(const char* format, double n) {
  char text[64];
  std::snprintf(text, sizeof text, format, n);
  return text;
}

std::string id_text(LoopId l) { return l.valid() ? std::to_string(l.index()) : "-"; }

std::string hex(uint32_t n) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", n);
  return text;
}

// Half the width of the interval, relative to the total.
std::string error_text(const LoopReport& r) {
  if (!r.cycles || r.cycles->total == 0) return "-";
  double half = std::max(r.cycles->high - r.cycles->total, r.cycles->total - r.cycles->low);
  return formatted("%.1f %%", 100 * half / r.cycles->total);
}

bool has_exact(const LoopReport& r) { return r.exact_cycles.has_value(); }

// By how much the extrapolated total is above what all executions took, as a share of that.
std::optional<double> error_of(const LoopReport& r) {
  if (!r.cycles || !r.exact_cycles || *r.exact_cycles == 0) return std::nullopt;
  return r.cycles->total / *r.exact_cycles - 1;
}

std::string exact_text(const LoopReport& r) {
  return r.exact_cycles ? formatted("%.0f", *r.exact_cycles) : "-";
}

std::string off_text(const LoopReport& r) {
  std::optional<double> error = error_of(r);
  return error ? formatted("%+.2f %%", 100 * *error) : "-";
}

// Names come from modules: what could steer a terminal, or break the line, is shown as '?'.
std::string on_one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

std::string name_text(const std::string& name) {
  constexpr size_t kShown = 32;
  const std::string out = on_one_line(shortened(name, kShown));
  return out + std::string(kShown - std::min(kShown, out.size()), ' ');
}

// A field in quotes, as RFC 4180 has it.
std::string csv_quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

ordered_json loop_json(LoopId l) { return l.valid() ? ordered_json(l.index()) : nullptr; }

ordered_json loop_json(const LoopReport& r) {
  ordered_json j;
  j["method"] = r.method.valid() ? ordered_json(r.method.number()) : nullptr;
  j["function"] = r.name;
  j["module_key"] = r.key.module_key;
  j["function_index"] = r.key.function_index;
  j["loop"] = loop_json(r.loop);
  j["parent"] = loop_json(r.parent);
  j["depth"] = r.loop.valid() ? ordered_json(r.depth) : nullptr;
  j["height"] = r.loop.valid() ? ordered_json(r.height) : nullptr;
  j["location"] = r.location ? ordered_json(*r.location) : nullptr;
  if (!r.source.empty()) j["source"] = position_text(r.source[0]);
  j["start_offset"] = r.start_offset;
  j["end_offset"] = r.end_offset;
  j["unit"] = r.unit;
  j["cycles"] = r.cycles ? ordered_json(r.cycles->total) : nullptr;
  j["cycles_low"] = r.cycles ? ordered_json(r.cycles->low) : nullptr;
  j["cycles_high"] = r.cycles ? ordered_json(r.cycles->high) : nullptr;
  j["exclusive_cycles"] = r.exclusive_cycles ? ordered_json(*r.exclusive_cycles) : nullptr;
  j["entries"] = r.entries;
  j["iterations"] = r.iterations;
  j["timed"] = r.timed;
  j["share"] = r.share;
  j["exact_cycles"] = r.exact_cycles ? ordered_json(*r.exact_cycles) : nullptr;
  std::optional<double> error = error_of(r);
  j["error"] = error ? ordered_json(*error) : nullptr;
  return j;
}

}  // namespace

std::string loops_text(std::span<const LoopReport> loops) {
  constexpr int kWidths[] = {5, 6, 9, 9, 16, 9, 16, 13, 14, 9, 16, 9};
  const bool exact = std::ranges::any_of(loops, has_exact);
  const size_t columns = std::size(kWidths) - (exact ? 0 : 2);
  std::string out;
  auto add = [&](const std::string& name, const std::string(&cells)[12], const std::string& at) {
    out += name_text(name);
    for (size_t i = 0; i < columns; ++i) {
      const auto width = static_cast<size_t>(kWidths[i]);
      out += ' ' + std::string(width - std::min(width, cells[i].size()), ' ') + cells[i];
    }
    if (!at.empty()) out += "  " + on_one_line(at);
    out += '\n';
  };
  const std::string unit = loops.empty() ? "cycles" : loops.front().unit;
  add("function",
      {"loop", "depth", "start", "end", unit, "+-", "exclusive", "entries", "iterations", "share",
       "exact", "off"},
      std::ranges::all_of(loops, [](const LoopReport& r) { return r.source.empty(); }) ? ""
                                                                                       : "source");
  for (const LoopReport& r : rows_of(loops)) {
    add(r.name,
        {id_text(r.loop), r.loop.valid() ? std::to_string(r.depth) : "-", hex(r.start_offset),
         hex(r.end_offset), r.cycles ? formatted("%.0f", r.cycles->total) : "-", error_text(r),
         r.exclusive_cycles ? formatted("%.0f", *r.exclusive_cycles) : "-",
         formatted("%.0f", r.entries), formatted("%.0f", r.iterations),
         formatted("%.2f %%", 100 * r.share), exact_text(r), off_text(r)},
        r.source.empty() ? "" : position_text(r.source[0]));
  }
  return out;
}

std::string loops_json(std::span<const LoopReport> loops) {
  ordered_json j = ordered_json::array();
  for (const LoopReport& r : rows_of(loops)) j.push_back(loop_json(r));
  // Names come from the module and may be any bytes.
  return j.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string executions_json(std::span<const LoopExecution> executions,
                            std::span<const LoopReport> loops) {
  const std::string unit = loops.empty() ? "cycles" : loops.front().unit;
  ordered_json j = ordered_json::array();
  for (const LoopExecution& x : executions) {
    j.push_back({{"method", x.method.number()},
                 {"loop", loop_json(x.loop)},
                 {"start_offset", x.start_offset},
                 {unit, x.cycles},
                 {"thread", x.thread}});
  }
  return j.dump(2) + "\n";
}

std::string loops_csv(std::span<const LoopReport> loops) {
  std::string out =
      "function,loop,depth,start_offset,end_offset,cycles,cycles_low,cycles_high,"
      "exclusive_cycles,entries,iterations,timed,share,parent,height,location,exact_cycles,"
      "error,unit\r\n";
  for (const LoopReport& r : rows_of(loops)) {
    ordered_json j = loop_json(r);
    out += csv_quoted(profile::guarded(r.name));
    for (const char* key :
         {"loop", "depth", "start_offset", "end_offset", "cycles", "cycles_low", "cycles_high",
          "exclusive_cycles", "entries", "iterations", "timed", "share", "parent", "height",
          "location", "exact_cycles", "error", "unit"}) {
      out += ',';
      if (!j[key].is_null()) out += j[key].dump();
    }
    out += "\r\n";
  }
  return out;
}

}  // namespace uptier::tools
