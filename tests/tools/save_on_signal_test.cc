// A program that is ended by a signal leaves its profile.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/program_runs.h"
#include "tests/support/tool_process.h"
#include "uptier/profile_file.h"

namespace uptier::save_on_signal_test {
namespace {

class SaveOnSignal : public ::testing::TestWithParam<int> {};

TEST_P(SaveOnSignal, leaves_the_profile_and_ends_by_the_signal) {
  char name[] = "/tmp/uptier-signal-XXXXXX";
  const std::string dir = mkdtemp(name), path = dir + "/p.upf";
  // With this argument it runs for minutes.
  test::ToolProcess tool({"run", "--profile", path, test::wasm_path("bytecode"), "1000000"});
  tool.await_cpu(100);
  EXPECT_EQ(tool.end(GetParam()), -GetParam());
  const std::string bytes = test::slurp(path);
  const Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file.ok());
  uint64_t most = 0;
  for (const auto& [key, m] : file->profile.methods) {
    for (uint64_t n : m.estimates) most = std::max(most, n);
  }
  EXPECT_GT(most, 10'000u) << "of " << file->profile.methods.size() << " methods";
  std::filesystem::remove_all(dir);
}

INSTANTIATE_TEST_SUITE_P(Both, SaveOnSignal, ::testing::Values(SIGINT, SIGTERM),
                         [](const auto& i) { return i.param == SIGINT ? "SIGINT" : "SIGTERM"; });

}  // namespace
}  // namespace uptier::save_on_signal_test
