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

namespace uptier::tools {
namespace {

std::string loops_as(const std::string& form, const std::vector<LoopReport>& loops) {
  if (form == "json") return loops_json(loops);
  if (form == "csv") return loops_csv(loops);
  return loops_text(loops);
}

// One line a record: cycles since the first one, thread, method, site, tag, value.
std::string records_text(Runtime& runtime) {
  std::string out;
  char line[192];
  std::vector<LogRecord> log = runtime.read_log();
  uint64_t first = UINT64_MAX;
  for (const LogRecord& r : log) first = std::min(first, r.cycles);
  for (const LogRecord& r : log) {
    std::snprintf(line, sizeof line,
                  "log +%" PRIu64 " thread %u method %u site %u tag %u value %" PRId64 "\n",
                  r.cycles - first, r.thread, r.method.number(), r.site, r.tag,
                  static_cast<int64_t>(r.value));
    out += line;
  }
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
