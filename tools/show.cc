// Output after a run: each part goes to a file of its own, or to stderr.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/loop_table.h"
#include "tools/report_json.h"
#include "tools/streams.h"
#include "uptier/log_text.h"

namespace uptier::tools {
namespace {

std::string loops_as(const std::string& form, const std::vector<LoopReport>& loops) {
  if (form == "json") return loops_json(loops);
  if (form == "csv") return loops_csv(loops);
  return loops_text(loops);
}

// A line of output, and the time stamp by which lines are sorted.
struct LogRow {
  uint64_t cycles = 0;
  std::string text;
};

// Returns one line for each record of a log probe, with thread, method, site, tag and value, and
// one for each line of text.
std::vector<LogRow> log_rows(const Runtime& runtime, const std::vector<LogRecord>& log) {
  std::vector<LogRow> rows;
  char line[192];
  for (const LogRecord& r : log) {
    if (!runtime.log_format({r.tag & ~uint32_t{15}}).empty()) continue;  // part of a line of text
    std::snprintf(line, sizeof line, " thread %u method %u site %u tag %u value %" PRId64 "\n",
                  r.thread, r.method.number(), r.site, r.tag, static_cast<int64_t>(r.value));
    rows.push_back({r.cycles, line});
  }
  for (const LogLine& l : log_lines(log)) {
    const std::string format = runtime.log_format(l.format);
    if (format.empty()) continue;
    std::snprintf(line, sizeof line, " thread %u method %u site %u: ", l.thread, l.method.number(),
                  l.site);
    rows.push_back({l.cycles, line + log_text(format, l.arguments) + "\n"});
  }
  std::ranges::stable_sort(rows, {}, &LogRow::cycles);
  return rows;
}

// Lines begin with the cycles since the first one.
std::string records_text(Runtime& runtime) {
  std::string out;
  const std::vector<LogRecord> log = runtime.read_log();
  const std::vector<LogRow> rows = log_rows(runtime, log);
  for (const LogRow& row : rows) {
    out += "log +" + std::to_string(row.cycles - rows.front().cycles) + row.text;
  }
  char line[192];
  std::snprintf(line, sizeof line, "log: %zu records, %" PRIu64 " lost\n", log.size(),
                runtime.report().losses.log_records);
  return out + line;
}

// Returns kOk or kFailed.
int put(const std::string& to, const std::string& text) {
  if (to.empty()) {
    std::fputs(text.c_str(), stderr);
    return kOk;
  }
  Status s = write_text(to, text);
  return s ? int{kOk} : fail(kFailed, s.error().message);
}

}  // namespace

int show(Runtime& runtime, const Shown& what) {
  if (what.report.empty() && what.loops.empty() && !what.log && what.sample.empty()) return kOk;
  runtime.flush();
  int code = kOk;
  if (!what.report.empty() || !what.sample.empty()) {
    Report r = runtime.report();
    const bool json = what.report == "json";
    if (what.report.empty()) {
      code |= put("", r.time.text(what.report_methods));
    } else {
      code |= put(what.report_to, json ? report_json(r) : r.text(what.report_methods));
    }
    if (!what.folded.empty()) code |= put(what.folded, r.time.folded());
  }
  if (!what.loops.empty()) {
    const std::vector<LoopReport> loops = runtime.loops();
    const bool each = what.loops == kEachLoop;
    code |= put(what.loops_to, each ? executions_json(runtime.loop_executions(), loops)
                                    : loops_as(what.loops, loops));
  }
  if (what.log) code |= put(what.log_to, records_text(runtime));
  return code;
}

}  // namespace uptier::tools
