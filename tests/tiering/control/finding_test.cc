// Who finds the methods that are observed and optimized: counts, stack samples, or both.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>

#include "tests/support/workshop.h"
#include "uptier/uptier.h"

namespace uptier::test::finding_test {
namespace {

uint64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// A method that takes microseconds, and one that takes nearly no time; both branch.
struct HotAndCold {
  Workshop shop;
  MethodId hot, cold;

  explicit HotAndCold(const Options& o) : shop(o) {
    hot = shop.add("hot", kOne, [](FunctionBuilder& b) {
      Value rounds =
          b.binary(Opcode::kAdd, b.i64(3000), b.binary(Opcode::kAnd, b.param(0), b.i64(1)));
      loop_down(b, rounds, b.param(0), [&](Value sum, Value x) {
        return b.binary(Opcode::kAdd, b.binary(Opcode::kMul, sum, b.i64(0x5851f42d)), x);
      });
    });
    cold = shop.add("cold", kOne, [](FunctionBuilder& b) {
      Block yes = b.create_block(), no = b.create_block();
      b.branch(b.binary(Opcode::kNe, b.binary(Opcode::kAnd, b.param(0), b.i64(1)), b.i64(0)), yes,
               no);
      b.seal(yes);
      b.seal(no);
      b.switch_to(yes);
      b.ret(b.i64(1));
      b.switch_to(no);
      b.ret(b.i64(2));
    });
  }

  void run(uint64_t ns) {
    ThreadScope scope(*shop.runtime);
    for (uint64_t end = cpu_ns() + ns; cpu_ns() < end;) {
      ASSERT_TRUE(shop.call(hot, {1}).ok());
      if (colds == 0) continue;
      ASSERT_TRUE(shop.call(cold, {colds--}).ok());
    }
  }
  MethodReport report(MethodId m) {
    for (const MethodReport& r : shop.runtime->report().methods) {
      if (r.method == m) return r;
    }
    return {};
  }

  uint64_t colds = 300;
};

bool has_copy(const MethodReport& r) {
  return std::ranges::any_of(r.versions,
                             [](const VersionReport& v) { return v.copy == Copy::kInstrumented; });
}

bool is_found(const Report& r, MethodId m) {
  return std::ranges::any_of(
      r.decisions, [&](const DecisionRecord& d) { return d.action == "find" && d.method == m; });
}

bool is_sampled(const Report& r, std::string_view name) {
  return std::ranges::any_of(r.time.rows, [&](const TimeRow& row) { return row.name == name; });
}

TEST(Finding, a_method_that_no_sample_met_has_no_copy) {
  HotAndCold p(options({{"find", "samples"}, {"sample_hz", "1000"}}));
  p.run(400'000'000);
  Report r = p.shop.runtime->report();
  EXPECT_TRUE(is_found(r, p.hot));
  EXPECT_EQ(p.report(p.hot).tier, Tier::kOptimized);
  if (is_sampled(r, "cold")) GTEST_SKIP() << "a sample met the method of a few microseconds";
  EXPECT_FALSE(is_found(r, p.cold));
  EXPECT_EQ(p.report(p.cold).calls, 300u);
  EXPECT_EQ(p.report(p.cold).tier, Tier::kBaseline);
  EXPECT_FALSE(has_copy(p.report(p.cold)));
  EXPECT_EQ(p.report(p.cold).sampled_calls, 0u);
  EXPECT_EQ(r.losses.samples_without_copy, 0u);
}

TEST(Finding, counts_find_a_method_of_no_time) {
  for (const char* find : {"counts", "both"}) {
    HotAndCold p(options({{"find", find}, {"sample_hz", "1000"}}));
    p.run(200'000'000);
    EXPECT_TRUE(has_copy(p.report(p.cold))) << find;
    EXPECT_EQ(p.report(p.hot).tier, Tier::kOptimized) << find;
  }
}

TEST(Finding, a_running_runtime_may_be_told_otherwise) {
  HotAndCold p(options({{"find", "samples"}, {"sample_hz", "1000"}}));
  p.colds = 0;
  p.run(50'000'000);
  Runtime& runtime = *p.shop.runtime;
  EXPECT_FALSE(runtime.set("sample_hz", "0").ok());
  ASSERT_TRUE(runtime.set("find", "counts").ok());
  p.colds = 300;
  p.run(100'000'000);
  EXPECT_TRUE(has_copy(p.report(p.cold)));
  ASSERT_TRUE(runtime.set("sample_hz", "0").ok());
  Status refused = runtime.set("find", "samples");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("sample_hz"), std::string::npos);
}

TEST(Finding, samples_need_a_rate_and_a_tier_that_changes) {
  auto refused = [](std::initializer_list<std::pair<const char*, const char*>> words) {
    Options o;
    for (auto [name, value] : words) EXPECT_TRUE(o.set(name, value).ok());
    Result<std::unique_ptr<Runtime>> r = Runtime::create(o);
    return r.ok() ? std::string() : r.error().message;
  };
  EXPECT_NE(refused({{"find", "samples"}}).find("sample_hz=1000"), std::string::npos);
  EXPECT_NE(refused({{"find", "both"}}).find("sample_hz=1000"), std::string::npos);
  EXPECT_NE(refused({{"find", "samples"}, {"sample_hz", "9"}, {"interval", "1"}}).find("interval"),
            std::string::npos);
  EXPECT_NE(
      refused({{"find", "samples"}, {"sample_hz", "9"}, {"tier", "baseline"}}).find("tier=auto"),
      std::string::npos);
  EXPECT_EQ(refused({{"find", "samples"}, {"sample_hz", "9"}}), "");
}

}  // namespace
}  // namespace uptier::test::finding_test
