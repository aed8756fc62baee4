// The tool's arguments: which of two settings wins, which words are refused, and the message for a
// misspelt variable.
#include <gtest/gtest.h>

#include "test_paths.h"
#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"

namespace uptier::test::cli_words_test {
namespace {

using CliWords = ToolDir;

// Returns the value of an option in the output of `uptier options`.
std::string value_of(const std::string& table, const std::string& name) {
  const size_t at = table.find("\n" + name + " ");
  if (at == std::string::npos) return "no row";
  const size_t begin = table.find_first_not_of(' ', at + 1 + name.size());
  return table.substr(begin, table.find(' ', begin) - begin);
}

TEST_F(CliWords, of_two_that_set_one_option_the_later_wins) {
  const std::pair<const char*, const char*> cases[] = {
      {"-O interval=5 --interval 9", "9"},
      {"--interval 9 -O interval=5", "5"},
      {"--interval=9 --option interval=5 --interval=7", "7"},
      {"-O interval=5 -O interval=6", "6"},
      {"--interval 5 --interval 6", "6"},
      {"-Ointerval=5 -O seed=3 --interval 9 -O seed=4", "9"}};
  for (const auto& [words, value] : cases) {
    const RunResult r = tool(std::string("options ") + words);
    EXPECT_EQ(r.code, 0) << words << r.err;
    EXPECT_EQ(value_of(r.out, "interval"), value) << words;
  }
  // The command line wins over the environment, and over the settings that --loops implies.
  const RunResult over = in_dir("UPTIER_INTERVAL=3 " UPTIER_TOOL " options -O interval=5");
  EXPECT_EQ(value_of(over.out, "interval"), "5");
  for (const char* words : {"--loops -O interval=7", "-O interval=7 --loops"}) {
    const RunResult r = tool(std::string("run --trace t ") + words + " " + wasm_path("mix") +
                             " && " UPTIER_TOOL " trace dump t");
    EXPECT_NE(r.out.find(" interval 7 gap "), std::string::npos) << words << r.err;
  }
}

TEST_F(CliWords, wrong_value_is_refused_also_if_a_later_one_is_right) {
  EXPECT_EQ(tool("options -O interval=0 --interval 9").code, 2);
  EXPECT_EQ(tool("options --interval 9 -O nothing=1").code, 2);
  EXPECT_EQ(tool("options -O interval").code, 2);
}

TEST_F(CliWords, variable_that_nearly_is_an_option_is_told_of) {
  const std::pair<const char*, const char*> near[] = {
      {"UPTIER_INTERVALL=9", "UPTIER_INTERVALL is no option; UPTIER_INTERVAL is"},
      {"UPTIER_INTRVL=9", "UPTIER_INTRVL is no option; UPTIER_INTERVAL is"},
      {"UPTIER_TEIR=baseline", "UPTIER_TEIR is no option; UPTIER_TIER is"},
      {"UPTIER_FLUSHFIRST=9", "UPTIER_FLUSHFIRST is no option; UPTIER_FLUSH_FIRST is"},
      {"UPTIER_PROFIL=p", "UPTIER_PROFIL is no option; UPTIER_PROFILE is"},
      {"UPTIER_GAPS=fixed", "UPTIER_GAPS is no option; UPTIER_GAP is"}};
  for (const auto& [variable, line] : near) {
    const std::string environment = std::string(variable) + " ";
    const RunResult r = in_dir(environment + UPTIER_TOOL " options");
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.err, "uptier: " + std::string(line) + "\n");
    const RunResult run = in_dir(environment + UPTIER_TOOL " run " + wasm_path("mix"));
    EXPECT_EQ(run.out, expected_output("mix"));
    EXPECT_EQ(run.err, "uptier: " + std::string(line) + "\n");
  }
}

TEST_F(CliWords, variables_that_are_options_or_far_from_any_are_not_told_of) {
  for (const char* variable :
       {"UPTIER_BLESS=1", "UPTIER_DUMP=ir", "UPTIER_RANDOM_SEEDS=9", "UPTIER_GREETING=hello",
        "UPTIER_=1", "UPTIER_X=1", "UPTIER_GO=1", "UPTIER_TOOL=1", "UPTIER_CALC=1",
        "UPTIER_SOURCE_DIR=.", "UPTIER_BUILD_TESTS=1", "XUPTIER_INTERVALL=1", "UPTIERINTERVAL=1",
        "UPTIER_INTERVAL=9", "UPTIER_GDB=off", "UPTIER_GAP=fixed", "UPTIER_STRESS=osr=all",
        "UPTIER_TIME_LOOPS=1:0", "UPTIER_OPT_RANGE=0..1"}) {
    EXPECT_EQ(in_dir(std::string(variable) + " " UPTIER_TOOL " options").err, "") << variable;
  }
}

TEST_F(CliWords, counts_are_not_negative) {
  for (const char* words :
       {"run --report --report-methods -1 x.wasm", "profile merge -o sum --trim -1 p",
        "profile merge -o sum --cap-per-host -1 p", "profile merge -o sum --quorum -1 p",
        "profile overlap --top -1 p p", "profile dot --top -1 p",
        "profile export --format=json --min-executions -1 p", "profile show --top -1 p",
        "profile promote --to a --min-runs -1 p", "profile promote --to a --min-samples -1 p",
        "report --listings -1 p"}) {
    const RunResult r = tool(words);
    EXPECT_EQ(r.code, 2) << words << r.err;
    // If there is a maximum too, the message gives the range.
    const bool told = r.err.find("-1 is negative") != std::string::npos ||
                      r.err.find("-1 not in range 0 to 1000000000") != std::string::npos;
    EXPECT_TRUE(told) << words << r.err;
  }
  const std::string methods = "run --report --report-methods ";
  const RunResult all = tool(methods + "0 " + wasm_path("mix"));
  const RunResult one = tool(methods + "1 " + wasm_path("mix"));
  EXPECT_EQ(all.code, 0);
  EXPECT_EQ(one.code, 0);
  EXPECT_LT(one.err.size(), all.err.size());
}

TEST_F(CliWords, baseline_code_is_not_entered_at_a_loop) {
  const std::string source = std::string(UPTIER_SOURCE_DIR) + "/tests/ir/loops.uir";
  for (const char* osr : {"0", "99"}) {
    const RunResult r = tool("compile " + source + " -f sum --baseline --osr " + osr);
    EXPECT_EQ(r.code, 2) << r.out;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find("--osr: baseline code cannot be entered at a loop"), std::string::npos)
        << r.err;
  }
  EXPECT_EQ(tool("compile " + source + " -f sum --osr 0").code, 0);
  EXPECT_EQ(tool("compile " + source + " -f sum --osr 99").code, 1);
  EXPECT_EQ(tool("compile " + source + " -f sum --baseline").code, 0);
}

}  // namespace
}  // namespace uptier::test::cli_words_test
