// Counters that become constants: what a body learns about its own probes, in which code, and that
// the number never changes during the life of a value.
#include "jit/analysis/known_counts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "jit/frontend/verify.h"
#include "jit/ir/print.h"
#include "tests/support/inline_harness.h"
#include "tests/support/runtime_host.h"
#include "tiering/observe/known_counts.h"

namespace uptier::test::known_counts_test {
namespace {

// Sites: four blocks, then the hit probe. The function counts its calls and does the same thing in
// one of two ways.
constexpr const char* kTwoWays = R"(
func @twice(i64) -> i64 {
b0(v0: i64):
  probe hit
  v1 = known_count.i64 5
  v2 = const.i64 1000
  v3 = ge_u.i64 v1, v2
  branch v3, b1, b2
b1:
  v4 = add.i64 v0, v0
  jump b3(v4)
b2:
  v5 = mul.i64 v0, v2
  v6 = div_u.i64 v5, v2
  v7 = const.i64 2
  v8 = mul.i64 v6, v7
  jump b3(v8)
b3(v9: i64):
  return v9
}
)";

// Returns which of the two ways the code contains: 2 or 3.
std::vector<SiteId> ways_left(const jit::Module& m) {
  CodeMachine machine;
  OptimizedModule code(machine, m);
  for (uint64_t n : {0u, 1u, 21u}) {
    EXPECT_EQ(machine.run(code.entry(MethodId(0)), m.functions[0].signature(), {n}).bits, 2 * n);
  }
  std::vector<SiteId> sites = jit::observed_sites(*code.codes()[0]);
  std::erase_if(sites, [](SiteId s) { return s != 2 && s != 3; });
  return sites;
}

TEST(KnownCounts, the_way_that_does_not_pay_is_no_part_of_the_code) {
  jit::Module m = parse_or_die(kTwoWays);
  EXPECT_EQ(jit::asked_counts(m.functions[0]), (std::vector<SiteId>{5}));
  EXPECT_EQ(ways_left(m), (std::vector<SiteId>{3})) << "nothing is known";
  jit::note_counts(m.functions[0], {{{5, 999}}});
  EXPECT_EQ(ways_left(m), (std::vector<SiteId>{3}));
  jit::note_counts(m.functions[0], {{{5, 1000}}});
  EXPECT_EQ(ways_left(m), (std::vector<SiteId>{2}));
}

TEST(KnownCounts, text_has_the_site_and_what_was_noted) {
  jit::Module m = parse_or_die(kTwoWays);
  std::string plain = jit::to_text(m.functions[0]);
  EXPECT_NE(plain.find("known_count.i64 5\n"), std::string::npos) << plain;
  jit::note_counts(m.functions[0], {{{5, 77}}});
  std::string noted = jit::to_text(m.functions[0]);
  EXPECT_NE(noted.find("known_count.i64 5 count=77\n"), std::string::npos) << noted;
  EXPECT_EQ(jit::to_text(parse_or_die(noted).functions[0]), noted);
  jit::settle_counts(m.functions[0]);
  EXPECT_NE(jit::to_text(m.functions[0]).find("const.i64 77\n"), std::string::npos);
}

std::string broken_rule(const char* probe, const char* site) {
  std::string text = std::string("func @f(i64) -> i64 {\nb0(v0: i64):\n  ") + probe +
                     "\n  v1 = known_count.i64 " + site + "\n  return v1\n}\n";
  Result<jit::Module> m = jit::parse_module(text, {.file = "test"});
  if (!m) return m.error().message;
  Status s = jit::verify(m->functions[0]);
  return s.ok() ? "" : s.error().message;
}

TEST(KnownCounts, only_counters_hits_and_gauges_are_asked) {
  EXPECT_EQ(broken_rule("probe hit", "2"), "");
  EXPECT_EQ(broken_rule("probe counter v0", "2"), "");
  EXPECT_EQ(broken_rule("probe gauge v0", "2"), "");
  EXPECT_EQ(broken_rule("probe hit", "0"), "");
  const char* none = "the site is none of a counter, a hit or a gauge";
  EXPECT_NE(broken_rule("probe value v0", "2").find(none), std::string::npos);
  EXPECT_NE(broken_rule("probe hit", "1").find(none), std::string::npos);
  EXPECT_NE(broken_rule("probe hit", "3").find("out of range"), std::string::npos);
}

TEST(KnownCounts, a_builder_finds_the_site) {
  FunctionBuilder b(Signature{{Type::kI64}, Type::kI64}, "f");
  b.probe(ProbeKind::kValue, b.param(0));
  uint32_t hit = b.probe(ProbeKind::kHit);
  Value known = b.known_count(hit);
  Block gone = b.create_block();
  b.ret(known);
  b.switch_to(gone);
  b.seal(gone);
  uint32_t unreachable = b.probe(ProbeKind::kHit);
  b.ret(b.known_count(unreachable));
  Result<jit::Function> f = BuilderAccess::finish_verified(b);
  ASSERT_TRUE(f.ok()) << f.error().message;
  EXPECT_EQ(jit::asked_counts(*f), (std::vector<SiteId>{3}));
}

TEST(KnownCounts, a_builder_refuses_what_is_no_counter) {
  for (int wrong : {0, 1, 7}) {
    FunctionBuilder b(Signature{{Type::kI64}, Type::kI64}, "f");
    b.probe(ProbeKind::kRange, b.param(0));
    if (wrong == 1) b.probe(ProbeKind::kLog, b.param(0));
    b.ret(b.known_count(static_cast<uint32_t>(wrong)));
    ASSERT_FALSE(b.status().ok());
    EXPECT_NE(b.status().error().message.find("no such counter"), std::string::npos);
  }
}

// An inlined body reads the counter of its own method, not its caller's.
TEST(KnownCounts, an_inlined_body_brings_its_own_count) {
  jit::Module m = parse_or_die(R"(
func @inner() -> i64 {
b0:
  probe hit
  v0 = known_count.i64 2
  return v0
}
func @outer() -> i64 {
b0:
  probe hit
  v0 = call @inner()
  v1 = known_count.i64 3
  v2 = const.i64 1000
  v3 = mul.i64 v1, v2
  v4 = add.i64 v0, v3
  return v4
}
)");
  jit::note_counts(m.functions[0], {{{2, 7}}});
  jit::note_counts(m.functions[1], {{{3, 5}}});
  CodeMachine machine;
  ModuleInlinees source(m, even_profile);
  OptimizedModule code(machine, m, source, even_profile, Copy::kPlain);
  ASSERT_EQ(code.codes()[1]->tables().inlined.size(), 1u);
  EXPECT_EQ(machine.run(code.entry(MethodId(1)), m.functions[1].signature(), {}).bits, 5007u);
}

// A counter that saturated or wrapped below 0 stays a large number when it is divided by the number
// of runs.
TEST(KnownCounts, one_run_of_a_saturated_sum_is_its_share) {
  jit::Module m = parse_or_die(kTwoWays);
  MethodProfile p;
  p.schema.add(SlotKind::kCounter, 5);
  p.counts = p.estimates = {UINT64_MAX};
  auto known = [&](double runs) { return tiering::counts_in(p, m.functions[0], runs)[0].count; };
  EXPECT_EQ(known(1), UINT64_MAX);
  EXPECT_EQ(known(1.5), 0xaaaaaaaaaaaaa800u);
  EXPECT_EQ(known(2), 1ull << 63);
  EXPECT_EQ(known(0.5), UINT64_MAX);
  p.estimates = {10};
  EXPECT_EQ(known(4), 3u);
}

TEST(KnownCounts, a_gauge_is_the_same_however_many_runs_there_were) {
  jit::Module m = parse_or_die(kTwoWays);
  MethodProfile p;
  p.schema.add(SlotKind::kGauge, 5);
  p.counts = p.estimates = {90};
  for (double runs : {1.0, 3.0}) {
    EXPECT_EQ(tiering::counts_in(p, m.functions[0], runs)[0].count, 90u);
  }
}

// ---- In a runtime -------------------------------------------------------------------------------

// @calls returns its own known count of calls. @held tests whether a known count stays the same in
// a loop that is entered and left in the middle.
constexpr const char* kAsks = R"(
func @calls() -> i64 {
b0:
  probe hit
  v0 = known_count.i64 2
  return v0
}
func @held(i64) -> i64 {
b0(v0: i64):
  probe hit
  v1 = known_count.i64 4
  v2 = const.i64 12345
  v3 = add.i64 v1, v2
  v4 = const.i64 0
  jump b1(v0, v4)
b1(v5: i64, v6: i64):
  loop_header
  v7 = sub.i64 v3, v1
  v8 = add.i64 v6, v7
  v9 = const.i64 1
  v10 = sub.i64 v5, v9
  v11 = ne.i64 v10, v4
  branch v11, b1(v10, v8), b2
b2:
  return v8
}
)";

class Asking {
 public:
  explicit Asking(const Options& o)
      : runtime_(parse_or_die(kAsks), o), thread_(*runtime_.runtime) {}
  uint64_t calls() { return runtime_.call("calls", {}).bits; }
  uint64_t held(uint64_t rounds) { return runtime_.call("held", {rounds}).bits; }
  Runtime& runtime() { return *runtime_.runtime; }
  const IrRuntime& host() { return runtime_; }

 private:
  IrRuntime runtime_;
  ThreadScope thread_;
};

TEST(KnownCounts, nothing_is_known_in_baseline_code) {
  for (const char* tier : {"baseline", "instrumented"}) {
    Asking a(options({{"tier", tier}, {"workers", "0"}}));
    for (int i = 0; i < 100'000; ++i) ASSERT_EQ(a.calls(), 0u);
    a.runtime().flush();
    EXPECT_EQ(a.calls(), 0u);
  }
}

// Optimized code reads the estimated number of calls at the time it was compiled.
TEST(KnownCounts, optimized_code_knows_what_was_counted) {
  Asking a(options({{"workers", "0"}, {"policy", "always"}, {"measure_rates", "off"}}));
  uint64_t n = 0, known = 0;
  while (known == 0 && n < 1'000'000) {
    ++n;
    known = a.calls();
  }
  EXPECT_GT(known, n / 2);
  EXPECT_LT(known, n + n / 2);
}

TEST(KnownCounts, a_saved_profile_says_what_one_run_comes_to) {
  char dir[] = "/tmp/uptier-counts-XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  Options o = options({{"workers", "0"}, {"measure_rates", "off"}, {"profile_decay", "1"}});
  o.profile = std::string(dir) + "/p.upf";
  constexpr uint64_t kCalls = 300'000;
  for (int run = 0; run < 3; ++run) {
    Asking a(o);
    uint64_t first = a.calls();
    if (run == 0) {
      EXPECT_EQ(first, 0u);
    } else {
      EXPECT_NEAR(static_cast<double>(first), kCalls, kCalls / 10) << run;
    }
    for (uint64_t i = 1; i < kCalls; ++i) a.calls();
  }
  std::remove(o.profile.c_str());
  rmdir(dir);
}

TEST(KnownCounts, a_value_stays_what_it_is_wherever_code_is_entered_and_left) {
  for (const char* stress :
       {"values=every:1", "values=every:1,osr=every:1", "values=every:1,osr=every:2,guard=every:3",
        "values=every:2,flip=every:3"}) {
    Asking a(options({{"workers", "0"}, {"policy", "always"}, {"stress", stress}}));
    for (uint64_t rounds : {1u, 2u, 1000u, 50'000u, 7u}) {
      for (int i = 0; i < 50; ++i) ASSERT_EQ(a.held(rounds), rounds * 12345) << stress;
    }
    bool wild = a.calls() != 0;
    for (int i = 0; i < 100'000 && !wild; ++i) wild = a.calls() != 0;
    EXPECT_TRUE(wild) << stress;
  }
}

}  // namespace
}  // namespace uptier::test::known_counts_test
