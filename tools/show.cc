// What the tiers did, after a run.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "tools/commands.h"
#include "tools/loop_table.h"
#include "tools/report_json.h"

namespace uptier::tools {
namespace {

std::string loops_as(const std::string& form, const std::vector<LoopReport>& loops) {
  if (form == "json") return loops_json(loops);
  if (form == "csv") return loops_csv(loops);
  return loops_text(loops);
}

// One line a record: cycles since the first one, thread, method, site, tag, value.
void print_log(Runtime& runtime) {
  std::vector<LogRecord> log = runtime.read_log();
  uint64_t first = UINT64_MAX;
  for (const LogRecord& r : log) first = std::min(first, r.cycles);
  for (const LogRecord& r : log) {
    std::fprintf(stderr, "log +%" PRIu64 " thread %u method %u site %u tag %u value %" PRId64 "\n",
                 r.cycles - first, r.thread, r.method.number(), r.site, r.tag,
                 static_cast<int64_t>(r.value));
  }
  std::fprintf(stderr, "log: %zu records, %" PRIu64 " lost\n", log.size(),
               runtime.report().losses.log_records);
}

}  // namespace

void show(Runtime& runtime, const Shown& what) {
  if (what.report.empty() && what.loops.empty() && !what.log) return;
  runtime.flush();
  if (!what.report.empty()) {
    Report r = runtime.report();
    std::string text = what.report == "json" ? report_json(r) : r.text(what.report_methods);
    std::fputs(text.c_str(), stderr);
  }
  if (!what.loops.empty()) std::fputs(loops_as(what.loops, runtime.loops()).c_str(), stderr);
  if (what.log) print_log(runtime);
}

}  // namespace uptier::tools
