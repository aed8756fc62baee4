// Bodies that are inlined into optimized code: what the instrumented copy observes of them, and how
// the runtime reacts.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "tests/support/pick_program.h"
#include "tests/support/program_runs.h"
#include "tests/support/random_ir.h"
#include "tests/support/runtime_host.h"
#include "uptier/profile_file.h"

namespace uptier::test::observe_inlined_test {
namespace {

// `left` and `right` have one block each, so any change is in the bodies that they call.
const std::string kText = kPick + R"(
func @left(i32) -> i32 {
b0(v0: i32):
  v1 = call @pick(v0)
  v2 = const.i32 1
  v3 = add.i32 v1, v2
  return v3
}
func @right(i32) -> i32 {
b0(v0: i32):
  v1 = call @pick(v0)
  v2 = const.i32 2
  v3 = add.i32 v1, v2
  return v3
}
)";

class Inlining {
 public:
  explicit Inlining(const Options& o, TraceSink* sink = nullptr)
      : runtime_(parse_or_die(kText), o, sink), thread_(*runtime_.runtime) {
    // A method that was never called is not inlined.
    EXPECT_EQ(runtime_.call("pick", {1}).bits, 6u);
  }

  // Calls `left` and `right` in turns, in `left` and `right` of a hundred calls with 1.
  void both(uint64_t calls, uint64_t left, uint64_t right) {
    for (uint64_t i = 0; i < calls; ++i) {
      uint64_t a = random_.below(100) < left ? 1 : 0, b = random_.below(100) < right ? 1 : 0;
      ASSERT_EQ(runtime_.call("left", {a}).bits, a == 1 ? 7u : 1u);
      ASSERT_EQ(runtime_.call("right", {b}).bits, b == 1 ? 8u : 2u);
    }
  }
  std::vector<VersionReport> versions(std::string_view name, Copy copy) const {
    std::vector<VersionReport> found;
    for (const VersionReport& v : runtime_.report_of(name).versions) {
      if (v.tier == Tier::kOptimized && v.copy == copy) found.push_back(v);
    }
    return found;
  }
  std::vector<DecisionRecord> decisions(std::string_view name, std::string_view action,
                                        std::string_view reason) const {
    std::vector<DecisionRecord> found;
    for (const DecisionRecord& d : runtime_.runtime->report().decisions) {
      bool meant = d.method_name == name && d.action == action;
      if (meant && d.reason.find(reason) != std::string::npos) found.push_back(d);
    }
    return found;
  }
  Runtime& runtime() { return *runtime_.runtime; }
  MethodReport report_of(const char* name) const { return runtime_.report_of(name); }

 private:
  IrRuntime runtime_;
  ThreadScope thread_;
  Random random_{7};
};

TEST(ObserveInlined, a_body_that_changes_its_mind_is_seen_and_its_root_is_made_anew) {
  Inlining w(following());
  w.both(400'000, 90, 90);
  ASSERT_FALSE(w.versions("left", Copy::kInstrumented).empty());
  ASSERT_EQ(w.versions("left", Copy::kPlain).back().inlined, 1u);
  ASSERT_TRUE(w.decisions("left", "re_instrument", "").empty());
  size_t versions = w.versions("left", Copy::kPlain).size();
  size_t others = w.versions("right", Copy::kPlain).size();
  uint64_t calls = 0;
  auto seen = [&] { return w.decisions("left", "re_instrument", "drift from earlier windows"); };
  for (; seen().empty() && calls < 100'000; calls += 100) w.both(100, 10, 90);
  // A window holds 256 samples; the first one may have begun in the phase before.
  EXPECT_LE(calls, (2 * 256 + 64) * kPickInterval * 5 / 4);
  ASSERT_EQ(seen().size(), 1u);
  EXPECT_NE(seen()[0].reason.find(" of pick at call 2 of left was"), std::string::npos)
      << seen()[0].reason;
  w.both(100'000, 10, 90);
  EXPECT_EQ(w.decisions("left", "specialize", "drift of").size(), 1u);
  ASSERT_EQ(w.versions("left", Copy::kPlain).size(), versions + 1);
  EXPECT_TRUE(w.versions("left", Copy::kPlain)[versions - 1].retired);
  // The new code is made from the body's counts at this place; its behaviour elsewhere does not
  // matter.
  w.both(500'000, 10, 90);
  EXPECT_EQ(w.versions("left", Copy::kPlain).size(), versions + 1);
  EXPECT_EQ(w.versions("right", Copy::kPlain).size(), others);
  EXPECT_TRUE(w.decisions("right", "re_instrument", "").empty());
}

TEST(ObserveInlined, the_same_phase_is_no_drift) {
  Inlining w(following());
  w.both(1'000'000, 50, 50);
  EXPECT_TRUE(w.decisions("left", "re_instrument", "").empty());
  EXPECT_TRUE(w.decisions("right", "re_instrument", "").empty());
}

// Returns the observations of `pick` where it is inlined into `root`.
const InlinedBody* pick_in(const Profile& p, uint32_t root) {
  for (const auto& [key, body] : p.inlined) {
    if (key.root.function_index != root) continue;
    EXPECT_EQ(key.path.size(), 1u);
    EXPECT_EQ(key.path[0].site, 2u);
    EXPECT_EQ(p.find(key.path[0].callee)->name, "pick");
    return &body;
  }
  return nullptr;
}

Profile told(const CollectingSink& sink) {
  ProfileBuilder builder;
  for (const TraceEvent& e : sink.events) EXPECT_TRUE(builder.add(e).ok());
  EXPECT_EQ(builder.skipped(), 0u);
  return builder.profile();
}

// Across several copies of several versions: each sample of the root counts the inlined body once,
// as an execution at that place and as nothing else.
TEST(ObserveInlined, trace_and_profile_tell_bodies_apart_from_their_methods) {
  CollectingSink sink;
  Options o = following();
  o.count_optimized = false;  // traces hold only counts of instrumented copies
  Inlining w(o, &sink);
  w.both(300'000, 90, 50);
  w.runtime().flush();
  uint64_t called = w.report_of("pick").calls;
  for (int phase = 0; phase < 4; ++phase) w.both(100'000, phase % 2 == 0 ? 10 : 90, 50);
  w.runtime().flush();
  EXPECT_GE(w.versions("left", Copy::kPlain).size(), 2u);
  EXPECT_GE(w.versions("left", Copy::kInstrumented).size(), 2u);
  const Profile seen = w.runtime().profile();
  EXPECT_EQ(seen.inlined.size(), 2u);
  for (const auto& [key, body] : seen.inlined) {
    ASSERT_TRUE(body.check(key).ok());
    EXPECT_EQ(body.code, (std::vector<uint64_t>{seen.find(key.root)->schema.cfg_hash,
                                                seen.find(key.path[0].callee)->schema.cfg_hash}));
  }
  for (uint32_t root : {1u, 2u}) {
    const InlinedBody* body = pick_in(seen, root);
    ASSERT_NE(body, nullptr);
    const auto& b = body->blocks;
    ASSERT_EQ(b.size(), 4u);
    const uint64_t samples = b.at(1).samples;
    EXPECT_GT(samples, 10'000u);
    EXPECT_EQ(b.at(1).count, samples);
    EXPECT_EQ(b.at(2).count + b.at(3).count, samples);
    EXPECT_EQ(b.at(4).count, samples);
    // A sample stands for as many executions of the body as calls of its root.
    EXPECT_NEAR(static_cast<double>(b.at(1).estimate) / static_cast<double>(samples), kPickInterval,
                4);
  }
  // Inlined executions are not calls.
  EXPECT_EQ(w.report_of("pick").calls, called);
  EXPECT_EQ(seen.find(seen.inlined.begin()->first.path[0].callee)->calls, called);
  // The trace gives the same.
  EXPECT_EQ(told(sink).inlined, seen.inlined);
}

// A profile file that several runs share.
class SavedInlined : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/uptier-inlined-XXXXXX";
    dir = mkdtemp(name);
    o.profile = dir + "/p.upf";
    o.count_optimized = false;  // only bodies that copies have observed
  }
  void TearDown() override { std::filesystem::remove_all(dir); }
  ProfileFile file() const {
    const std::string bytes = slurp(o.profile);
    Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(file.ok() && file->warnings.empty());
    return file.ok() ? *file : ProfileFile{};
  }
  Profile saved() const { return file().profile; }

  Options o = following();
  std::string dir;
};

// The observations of two runs are added; a run that saves twice counts once.
TEST_F(SavedInlined, bodies_are_saved_and_merged) {
  Profile first;
  {
    Inlining w(o);
    w.both(200'000, 90, 50);
    ASSERT_TRUE(w.runtime().save_profile().ok());
    EXPECT_FALSE(saved().inlined.empty());
    w.both(100'000, 90, 50);
    ASSERT_TRUE(w.runtime().save_profile().ok());
    first = w.runtime().profile();
    EXPECT_EQ(saved().inlined, first.inlined);
  }
  Inlining w(o);
  w.both(200'000, 90, 50);
  ASSERT_TRUE(w.runtime().save_profile().ok());
  const Profile now = w.runtime().profile(), both = saved();
  for (uint32_t root : {1u, 2u}) {
    ASSERT_TRUE(pick_in(now, root) != nullptr && pick_in(both, root) != nullptr);
    const auto entries = [&](const Profile& p) { return pick_in(p, root)->blocks.at(1).count; };
    EXPECT_GT(entries(both), entries(now));
    EXPECT_LE(entries(both), entries(now) + entries(first));
  }
}

TEST_F(SavedInlined, bodies_of_other_code_go_and_those_of_roots_that_did_not_run_fade) {
  const InlinedKey elsewhere{{99, 1}, {{1, {99, 2}}}};
  {
    Inlining w(o);
    w.both(200'000, 90, 50);
    ASSERT_TRUE(w.runtime().save_profile().ok());
  }
  ProfileFile old = file();
  EXPECT_EQ(old.profile.inlined.size(), 2u);
  for (auto& [key, body] : old.profile.inlined) body.code[1] = UINT64_MAX;
  old.profile.inlined[elsewhere] = {{1, 2}, {{1, {64, 640, 64}}}};
  // This makes the next run differ from the saved ones, so it is merged and not merely counted.
  ASSERT_FALSE(old.profile.methods.empty());
  MethodProfile other = old.profile.methods.begin()->second;
  other.key.function_index = 77;
  for (auto* counts : {&other.counts, &other.estimates}) {
    for (uint64_t& n : *counts) n *= 8;
  }
  old.profile.methods[other.key] = other;
  const std::vector<std::byte> bytes = profile_to_file(old.profile, old.info);
  std::ofstream(o.profile, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<int64_t>(bytes.size()));
  Inlining w(o);
  w.both(200'000, 90, 50);
  ASSERT_TRUE(w.runtime().save_profile().ok());
  Profile expected = w.runtime().profile();
  EXPECT_EQ(expected.inlined.size(), 2u);
  expected.inlined[elsewhere] = {{1, 2}, {{1, {32, 320, 32}}}};  // profile_decay is a half
  EXPECT_EQ(saved().inlined, expected.inlined);
}

// Returns the plain optimized code of a root in the order in which it was made, with `pick` inlined.
std::vector<const CodeImage*> codes_of(const CodeImages& images, const char* root) {
  std::vector<const CodeImage*> found;
  for (const CodeImage& c : images.codes) {
    const bool is = c.tier == Tier::kOptimized && c.copy == Copy::kPlain &&
                    images.methods[c.bodies[0].method].name == root;
    if (is && c.bodies.size() == 2) found.push_back(&c);
  }
  EXPECT_FALSE(found.empty()) << root;
  return found;
}

// Returns the offset of a block of `pick` in code; nothing if it has no row.
std::optional<uint32_t> place_in(const CodeImage& c, SiteId block) {
  for (const ImageRow& r : c.rows) {
    if (r.kind == ImageRow::Kind::kBlock && r.body == 1 && r.site == block) return r.offset;
  }
  return std::nullopt;
}

// The block that comes first must be the one that runs: block 2 of `pick` in `left`, block 3 in `right`.
void expect_laid_out_for_callers(const CodeImage& left, const CodeImage& right) {
  const auto left2 = place_in(left, 2), left3 = place_in(left, 3);
  const auto right2 = place_in(right, 2), right3 = place_in(right, 3);
  ASSERT_TRUE(left2 && left3 && right2 && right3) << "blocks that run equally often have no rows";
  EXPECT_LT(*left2, *left3);
  EXPECT_LT(*right3, *right2);
}

// Without a saved profile, the copies of the first code observe each body at its place, and the next code
// follows them.
TEST(ObserveInlined, a_body_that_differs_by_caller_has_code_for_each) {
  Options o = following();
  o.keep_code = true;
  Inlining w(o);
  w.both(600'000, 98, 2);
  const CodeImages images = w.runtime().code_images();
  expect_laid_out_for_callers(*codes_of(images, "left").back(), *codes_of(images, "right").back());
}

// `pick` takes either branch equally often, but each of its callers makes it take nearly always the same one:
// the code of the next run is laid out for that.
TEST_F(SavedInlined, the_first_code_of_a_root_has_each_body_as_it_runs_there) {
  {
    Inlining w(o);
    w.both(200'000, 98, 2);
    ASSERT_TRUE(w.runtime().save_profile().ok());
  }
  o.keep_code = true;
  Inlining w(o);
  w.both(1, 98, 2);
  const CodeImages images = w.runtime().code_images();
  expect_laid_out_for_callers(*codes_of(images, "left").front(),
                              *codes_of(images, "right").front());
}

// ---- Targets of indirect calls ----------------------------------------------------------------

constexpr const char* kIndirect = R"(
func @once(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 3
  v2 = add.i32 v0, v1
  return v2
}
func @twice(i32) -> i32 {
b0(v0: i32):
  v1 = add.i32 v0, v0
  return v1
}
func @apply(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = call_indirect.(i32)->i32 v0(v1)
  v3 = const.i32 1
  v4 = add.i32 v2, v3
  branch v4, b1, b2
b1:
  return v4
b2:
  v5 = const.i32 9
  return v5
}
)";

class Applying {
 public:
  explicit Applying(const Options& o) : r_(parse_or_die(kIndirect), o), thread_(*r_.runtime) {
    once_ = address("once");
    twice_ = address("twice");
    EXPECT_EQ(r_.call("once", {1}).bits, 4u);
    EXPECT_EQ(r_.call("twice", {1}).bits, 2u);
  }
  // Applies `twice` in `twice` of a hundred calls, otherwise `once`.
  void apply(uint64_t calls, uint64_t twice) {
    for (uint64_t i = 0; i < calls; ++i) {
      bool second = random_.below(100) < twice;
      ASSERT_EQ(r_.call("apply", {second ? twice_ : once_, 5}).bits, second ? 11u : 9u);
    }
  }
  std::vector<DecisionRecord> decisions(std::string_view action, std::string_view reason) const {
    std::vector<DecisionRecord> found;
    for (const DecisionRecord& d : r_.runtime->report().decisions) {
      bool meant = d.method_name == "apply" && d.action == action;
      if (meant && d.reason.find(reason) != std::string::npos) found.push_back(d);
    }
    return found;
  }
  // The observed targets of the call, by callee.
  struct Seen {
    std::map<uint64_t, uint64_t> of;
    uint64_t samples = 0;
  };
  Seen targets() const {
    r_.runtime->flush();
    Seen seen;
    for (const auto& [key, m] : r_.runtime->profile().methods) {
      if (m.name != "apply") continue;
      seen.samples = m.sampled_calls;
      for (const auto& [at, table] : m.tables) {
        if (at.first != SlotKind::kCallTarget) continue;
        for (const auto& [callee, entry] : table) seen.of[callee.value] += entry.count;
      }
    }
    return seen;
  }

 private:
  uint64_t address(const char* name) const {
    return reinterpret_cast<uint64_t>(r_.runtime->entry_address(r_.method(name)));
  }
  IrRuntime r_;
  ThreadScope thread_;
  uint64_t once_ = 0, twice_ = 0;
  Random random_{7};
};

// Targets count in the same way whether they are inlined or called.
TEST(ObserveInlined, targets_are_counted_in_optimized_code_too) {
  Applying w(following());
  w.apply(200'000, 75);
  Applying::Seen before = w.targets();
  w.apply(400'000, 75);
  Applying::Seen after = w.targets();
  uint64_t samples = after.samples - before.samples;
  EXPECT_GT(samples, 20'000u);
  uint64_t once = after.of[0] - before.of[0], twice = after.of[1] - before.of[1];
  EXPECT_EQ(once + twice, samples);
  // A standard deviation is 0.3 %.
  EXPECT_NEAR(static_cast<double>(twice) / static_cast<double>(samples), 0.75, 0.015);
  EXPECT_TRUE(w.decisions("re_instrument", "").empty());
}

TEST(ObserveInlined, targets_that_change_are_seen_and_the_next_version_guesses_anew) {
  Applying w(following());
  w.apply(400'000, 95);
  ASSERT_TRUE(w.decisions("re_instrument", "").empty());
  uint64_t calls = 0;
  for (; w.decisions("re_instrument", "").empty() && calls < 100'000; calls += 100) w.apply(100, 5);
  EXPECT_LE(calls, (2 * 256 + 64) * kPickInterval * 5 / 4);
  w.apply(100'000, 5);
  EXPECT_EQ(w.decisions("specialize", "drift of").size(), 1u);
  // The new code is made from the call's targets now.
  w.apply(500'000, 5);
  EXPECT_EQ(w.decisions("specialize", "drift of").size(), 1u);
}

}  // namespace
}  // namespace uptier::test::observe_inlined_test
