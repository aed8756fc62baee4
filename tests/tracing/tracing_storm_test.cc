// Storms: threads that notify, subscribe, load and unload tools, and call into a runtime in which all
// that may cut a pair short happens. A million events on each thread; the preset tsan watches them too.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"

namespace uptier::test::tracing_storm_test {
namespace {

class TracingStorm : public ToolDir {
 protected:
  RunResult storm(const std::string& words) const {
    const std::string folder = UPTIER_TRACING;
    return in_dir("UPTIER_TRACE=1 UPTIER_TRACE_DISPATCHER=" + folder +
                  "/libuptier_trace_dispatcher.so " + folder + "/uptier_storm_" + words);
  }
};

TEST_F(TracingStorm, tools_come_and_go_while_threads_notify) {
  const RunResult r =
      storm("tools 1000000 " + std::string(UPTIER_TRACING) + "/libuptier_storm_tool.so");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("2000000 pairs, 1000000 marks"), r.out.npos) << r.out;
}

TEST_F(TracingStorm, pairs_are_whole_under_traps_exits_exceptions_and_deopts) {
  const RunResult r = storm("runtime 1000000");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
}

}  // namespace
}  // namespace uptier::test::tracing_storm_test
