// Gaps against programs that are periodic in calls. The law: a constant gap g meets 1 of gcd(g,
// period) paths, so its samples of a program with even paths overlap the truth by 1 / gcd(g,
// period); random gaps meet all paths.
//
// Prime gaps are constant too, so they also alias, but only with periods that they divide.
#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>

#include "sampler/gap.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::aliasing_test {
namespace {

// Two nested loops: call n of @f takes path n mod (inner * outer).
struct Periods {
  uint32_t inner;
  uint32_t outer;

  uint32_t paths() const { return inner * outer; }
};

constexpr Periods kPeriods[] = {{2, 1}, {4, 1}, {8, 1}, {16, 1}, {32, 1}, {64, 1}, {5, 1},
                                {3, 5}, {2, 4}, {8, 2}, {3, 8},  {4, 16}, {17, 2}, {7, 9}};
constexpr uint32_t kIntervals[] = {2, 4, 8, 16, 64};

std::string program(Periods p) {
  std::string cases, blocks;
  for (uint32_t i = 1; i <= p.paths(); ++i) {
    std::string block = "b" + std::to_string(i);
    cases += (i == 1 ? "" : ", ") + block;
    blocks += block + ":\n  return v0\n";
  }
  std::string rest = "b" + std::to_string(p.paths() + 1);
  std::string f = "func @f(i32) -> i32 {\nb0(v0: i32):\n  switch v0, [" + cases + "], " + rest +
                  "\n" + blocks + rest + ":\n  return v0\n}\n";
  std::string inner = std::to_string(p.inner), outer = std::to_string(p.outer);
  return f + R"(
func @main(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 0
  v2 = const.i32 1
  v3 = const.i32 )" +
         inner + R"(
  v4 = const.i32 )" +
         outer + R"(
  jump b1(v1)
b1(v5: i32):
  loop_header
  v6 = rem_u.i32 v5, v4
  v7 = mul.i32 v6, v3
  jump b2(v1)
b2(v8: i32):
  loop_header
  v9 = add.i32 v7, v8
  v10 = call @f(v9)
  v11 = add.i32 v8, v2
  v12 = lt_u.i32 v11, v3
  branch v12, b2(v11), b3
b3:
  v13 = add.i32 v5, v2
  v14 = lt_u.i32 v13, v0
  branch v14, b1(v13), b4
b4:
  return v5
}
)";
}

constexpr uint64_t kSamples = 25'000;

// Returns the profile of @f in about `calls` calls.
Profile observe(Periods p, uint64_t calls, Options o) {
  o.policy = PolicyMode::kNever;
  o.workers = 0;
  o.adaptive = false;
  o.seed = 7;
  IrRuntime r(parse_or_die(program(p)), o);
  EXPECT_TRUE(r.call("main", {calls / p.inner}).ok());
  r.runtime->flush();
  Profile all = r.runtime->profile(), f;
  for (const auto& [key, m] : all.methods) {
    if (m.name == "f") f.methods[key] = m;
  }
  return f;
}

// Returns the overlap of edges: they lead from @f's entry to its paths.
double edge_overlap(const Profile& a, const Profile& b) {
  for (const KindOverlap& k : compare(a, b).kinds) {
    if (k.kind == SlotKind::kEdge) return k.overlap.value;
  }
  ADD_FAILURE() << "no edges";
  return 0;
}

// Counts all calls of whole periods: the truth for every longer run.
Profile truth_of(Periods p) {
  Options exhaustive;
  exhaustive.tier = TierMode::kInstrumented;
  return observe(p, uint64_t{100} * p.paths(), exhaustive);
}

// With 64 even paths, samples are about sqrt(64 / (2 pi 25000)) = 2.0 % from the truth.
Profile sample(Periods p, uint32_t interval, GapMode gap) {
  Options sampled;
  sampled.gap = gap;
  sampled.interval = interval;
  return observe(p, kSamples * interval, sampled);
}

// Returns the greatest common divisor of the gap and the period; 1 for random gaps.
uint32_t common_factor(Periods p, uint32_t interval, GapMode gap) {
  if (gap == GapMode::kRandom) return 1;
  uint32_t step = gap == GapMode::kPrime ? sampler::nearest_prime(interval) : interval;
  return std::gcd(step, p.paths());
}

struct Seen {
  int aliased_by_fixed = 0;  // of these, random gaps meet all paths
  int kept_by_prime = 0;     // of these, prime gaps meet all paths
};

// Checks all kinds of gaps at one interval and prints their overlaps.
void check(Periods p, uint32_t interval, const Profile& truth, Seen& seen) {
  bool aliased = common_factor(p, interval, GapMode::kFixed) > 1;
  seen.aliased_by_fixed += aliased;
  std::printf(" |");
  for (GapMode gap : {GapMode::kFixed, GapMode::kPrime, GapMode::kRandom}) {
    double got = edge_overlap(truth, sample(p, interval, gap));
    std::printf("%6.1f", 100 * got);
    uint32_t common = common_factor(p, interval, gap);
    SCOPED_TRACE(::testing::Message() << "period " << p.inner << " x " << p.outer << ", interval "
                                      << interval << ", gap " << static_cast<int>(gap));
    if (common == 1) {
      EXPECT_GE(got, 0.97);
      seen.kept_by_prime += aliased && gap == GapMode::kPrime;
    } else {
      EXPECT_NEAR(got, 1.0 / common, 0.01);
    }
  }
}

TEST(Aliasing, fixed_gaps_fall_to_a_fraction_where_random_ones_and_primes_do_not) {
  std::printf("overlap of edges, %%: fixed, prime, random gaps\nperiod  ");
  for (uint32_t interval : kIntervals) std::printf(" | at %-14u", interval);
  Seen seen;
  for (Periods p : kPeriods) {
    std::printf("\n%3u x %-2u", p.inner, p.outer);
    Profile truth = truth_of(p);
    for (uint32_t interval : kIntervals) check(p, interval, truth, seen);
  }
  std::printf("\n");
  EXPECT_GE(seen.aliased_by_fixed, 50) << "periods that prove nothing";
  EXPECT_GE(seen.kept_by_prime, 40);
}

}  // namespace
}  // namespace uptier::test::aliasing_test
