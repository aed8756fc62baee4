// The tool's words: which of two wins, what is refused, and what is said of a misspelt variable.
#include <gtest/gtest.h>

#include "tests/program_runs.h"
#include "tests/tool_dir.h"

namespace uptier::test {
namespace {

using CliWords = ToolDir;

TEST_F(CliWords, baseline_code_is_not_entered_at_a_loop) {
  const std::string source = std::string(UPTIER_SOURCE_DIR) + "/tests/ir/loops.uir";
  for (const char* osr : {"0", "99"}) {
    const RunResult r = tool("compile " + source + " -f sum --baseline --osr " + osr);
    EXPECT_EQ(r.code, 2) << r.out;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find("--osr: baseline code has no version"), std::string::npos) << r.err;
  }
  EXPECT_EQ(tool("compile " + source + " -f sum --osr 0").code, 0);
  EXPECT_EQ(tool("compile " + source + " -f sum --osr 99").code, 1);
  EXPECT_EQ(tool("compile " + source + " -f sum --baseline").code, 0);
}

}  // namespace
}  // namespace uptier::test
