// Work that a saved profile allows before a method is called: its callees are described, and the
// worker compiles it.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "tests/support/runtime_host.h"

namespace uptier::test::upf_warm_test {
namespace {

// `outer` calls `twice` directly, `twice` calls `triple`; `cold` is called once.
constexpr const char* kText = R"(
func @triple(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 3
  v2 = mul.i32 v0, v1
  return v2
}
func @twice(i32) -> i32 {
b0(v0: i32):
  v1 = call @triple(v0)
  v2 = call @triple(v1)
  return v2
}
func @outer(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  jump b1(v0, v1)
b1(v2: i32, v3: i32):
  loop_header 0 pc=0 []
  v4 = call @twice(v3)
  v5 = const.i32 1
  v6 = sub.i32 v2, v5
  branch v6, b1(v6, v4), b2(v4)
b2(v7: i32):
  return v7
}
func @cold(i32) -> i32 {
b0(v0: i32):
  return v0
}
)";

uint64_t outer(uint32_t rounds, uint32_t value) {
  for (uint32_t i = 0; i < rounds; ++i) value *= 9;
  return value;
}

class Warm : public testing::TestWithParam<uint64_t> {
 protected:
  Warm() {
    char name[] = "/tmp/uptier-warm-XXXXXX";
    dir_ = mkdtemp(name);
    options_.profile = dir_ + "/p.upf";
    options_.workers = GetParam();
    first_run();
  }
  ~Warm() override { std::filesystem::remove_all(dir_); }

  // Stays in baseline code, whose profile is complete.
  void first_run() {
    Options o = options_;
    o.workers = 0;
    o.policy = PolicyMode::kNever;
    IrRuntime r(parse_or_die(kText), o);
    ThreadScope scope(*r.runtime);
    for (uint32_t i = 0; i < 200; ++i) {
      ASSERT_EQ(r.call("outer", {1000, i}).bits, outer(1000, i));
    }
    ASSERT_EQ(r.call("cold", {5}).bits, 5u);
    ASSERT_TRUE(r.runtime->save_profile().ok());
  }

  std::string dir_;
  Options options_;
};

TEST_P(Warm, first_code_of_a_hot_method_has_its_callees_bodies) {
  IrRuntime r(parse_or_die(kText), options_);
  ThreadScope scope(*r.runtime);
  ASSERT_EQ(r.call("outer", {1, 2}).bits, 18u);
  MethodReport m = r.report_of("outer");
  ASSERT_EQ(m.tier, Tier::kOptimized);
  ASSERT_EQ(m.versions.size(), 1u) << "it has never been in baseline code";
  // With a worker, a callee may not be ready yet when its caller is compiled.
  if (GetParam() == 0) { EXPECT_EQ(m.versions[0].inlined, 3u); }
  EXPECT_EQ(r.call("outer", {1000, 7}).bits, outer(1000, 7));
}

TEST_P(Warm, what_was_described_ahead_is_what_is_compiled) {
  IrRuntime r(parse_or_die(kText), options_);
  ThreadScope scope(*r.runtime);
  ASSERT_EQ(r.call("outer", {1, 2}).bits, 18u);
  for (uint32_t i = 0; i < 50; ++i) {
    EXPECT_EQ(r.call("twice", {i}).bits, 9 * i);
    EXPECT_EQ(r.call("triple", {i}).bits, 3 * i);
  }
  EXPECT_EQ(r.runtime->report().losses.compiles_failed, 0u);
}

TEST_P(Warm, methods_may_go_before_they_are_called) {
  for (int i = 0; i < 20; ++i) {
    IrRuntime r(parse_or_die(kText), options_);
    ThreadScope scope(*r.runtime);
    ASSERT_EQ(r.call("cold", {5}).bits, 5u);
    const MethodId gone[] = {r.method("outer"), r.method("twice")};
    r.runtime->remove_methods(gone);
    ASSERT_EQ(r.call("triple", {5}).bits, 15u);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, Warm, testing::Values(0, 1));

// The worker compiles known methods although nobody calls them.
TEST(WarmWorker, makes_what_nobody_has_called_yet) {
  char name[] = "/tmp/uptier-warm-XXXXXX";
  const std::string dir = mkdtemp(name);
  Options o;
  o.profile = dir + "/p.upf";
  o.workers = 0;
  o.policy = PolicyMode::kNever;
  {
    IrRuntime r(parse_or_die(kText), o);
    ThreadScope scope(*r.runtime);
    for (uint32_t i = 0; i < 200; ++i) r.call("outer", {1000, i});
    r.call("cold", {5});
    ASSERT_TRUE(r.runtime->save_profile().ok());
  }
  o.workers = 1;
  o.policy = PolicyMode::kAuto;
  IrRuntime r(parse_or_die(kText), o);
  ThreadScope scope(*r.runtime);
  ASSERT_EQ(r.call("cold", {5}).bits, 5u);
  for (int i = 0; i < 3000 && r.report_of("outer").versions.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(r.report_of("outer").tier, Tier::kOptimized) << r.runtime->report().text();
  EXPECT_EQ(r.call("outer", {1000, 7}).bits, outer(1000, 7));
  std::filesystem::remove_all(dir);
}

// The worker measures the speed of compilation after all work that the program may be waiting for.
TEST(WarmWorker, measures_the_machine_when_it_has_nothing_else_to_do) {
  char name[] = "/tmp/uptier-warm-XXXXXX";
  const std::string dir = mkdtemp(name);
  Options o;
  o.profile = dir + "/p.upf";
  for (bool warm : {false, true}) {
    IrRuntime r(parse_or_die(kText), o);
    const double assumed = o.compile_ns;
    auto measured = [&](int ms) {
      for (int i = 0; i < ms && r.runtime->report().compile_rate_ns == assumed; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return r.runtime->report().compile_rate_ns != assumed;
    };
    EXPECT_EQ(measured(warm ? 50 : 30'000), !warm) << "no thread has attached";
    ThreadScope scope(*r.runtime);
    // It does not pay to optimize `cold`, which would measure the speed too.
    ASSERT_EQ(r.call("cold", {5}).bits, 5u);
    EXPECT_TRUE(measured(30'000));
    ASSERT_TRUE(r.runtime->save_profile().ok());
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace uptier::test::upf_warm_test
