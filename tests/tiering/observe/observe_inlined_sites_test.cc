// Indirect calls and probes of bodies that are inlined into optimized code: what the instrumented
// copy observes at each place, and how the runtime reacts.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "profile/data/text.h"
#include "tests/support/pick_program.h"
#include "tests/support/random_ir.h"
#include "tests/support/runtime_host.h"
#include "tests/support/workshop.h"
#include "uptier/profile_file.h"

namespace uptier::test::observe_inlined_sites_test {
namespace {

constexpr uint32_t kFactors = 130;  // too many to be inlined

// A function that multiplies its argument by itself `factors` times and adds something.
std::string power(const char* name, int add, uint32_t factors) {
  std::string text = std::string("func @") + name + "(i32) -> i32 {\nb0(v0: i32):\n";
  uint32_t v = 1;
  for (; v <= factors; ++v) {
    text += "  v" + std::to_string(v) + " = mul.i32 v" + std::to_string(v - 1) + ", v0\n";
  }
  std::string value = std::to_string(v);
  text += "  v" + value + " = const.i32 " + std::to_string(add) + "\n  v" + std::to_string(v + 1);
  text += " = add.i32 v" + std::to_string(v - 1) + ", v" + value + "\n  return v";
  return text + std::to_string(v + 1) + "\n}\n";
}

uint32_t powered(uint32_t x, uint32_t add, uint32_t factors = kFactors) {
  uint32_t y = x;
  for (uint32_t i = 0; i < factors; ++i) y *= x;
  return y + add;
}

// `apply` is one block with a call and three probes, at sites 2 to 5. It is inlined into `left` and
// `right`, at call 2 of each.
const std::string kApply = R"(
func @apply(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  probe value v1
  v2 = call_indirect.(i32)->i32 v0(v1)
  probe range v2
  probe hit
  return v2
}
func @left(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = call @apply(v0, v1)
  v3 = const.i32 1
  v4 = add.i32 v2, v3
  return v4
}
func @right(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = call @apply(v0, v1)
  v3 = const.i32 2
  v4 = add.i32 v2, v3
  return v4
}
)";
constexpr uint32_t kOdd = 0, kEven = 1, kLeft = 3, kRight = 4;  // function indices

class Places {
 public:
  explicit Places(TraceSink* sink = nullptr, uint32_t factors = kFactors, Options o = following())
      : factors_(factors),
        r_(parse_or_die(power("odd", 1, factors) + power("even", 0, factors) + kApply), o, sink),
        thread_(*r_.runtime) {
    odd_ = address("odd");
    even_ = address("even");
    EXPECT_EQ(r_.call("odd", {1}).bits, 2u);
    EXPECT_EQ(r_.call("even", {1}).bits, 1u);
    EXPECT_EQ(r_.call("apply", {odd_, 1}).bits, 2u);
  }
  // Calls both in turns, in `left` and `right` of a hundred calls with `even`.
  void both(uint64_t calls, uint64_t left, uint64_t right) {
    for (uint64_t i = 0; i < calls; ++i) {
      call("left", left, 3, 1);
      call("right", right, 5, 2);
    }
  }
  void only(const char* root, uint64_t calls, uint64_t even) {
    for (uint64_t i = 0; i < calls; ++i) call(root, even, 3, root == std::string("left") ? 1 : 2);
  }
  Runtime& runtime() { return *r_.runtime; }
  MethodReport report(const char* name) { return r_.report_of(name); }
  std::vector<DecisionRecord> decisions(std::string_view name, std::string_view action,
                                        std::string_view reason) const {
    std::vector<DecisionRecord> found;
    for (const DecisionRecord& d : r_.runtime->report().decisions) {
      bool meant = d.method_name == name && d.action == action;
      if (meant && d.reason.find(reason) != std::string::npos) found.push_back(d);
    }
    return found;
  }
  Profile profile() {
    r_.runtime->flush();
    return r_.runtime->profile();
  }
  size_t versions(const char* name) const {
    size_t n = 0;
    for (const VersionReport& v : r_.report_of(name).versions) {
      n += v.tier == Tier::kOptimized && v.copy == Copy::kPlain;
    }
    return n;
  }

 private:
  void call(const char* root, uint64_t even, uint32_t x, uint32_t more) {
    bool second = random_.below(100) < even;
    auto got = static_cast<uint32_t>(r_.call(root, {second ? even_ : odd_, x}).bits);
    ASSERT_EQ(got, powered(x, second ? 0 : 1, factors_) + more);
  }
  uint64_t address(const char* name) const {
    return reinterpret_cast<uint64_t>(r_.runtime->entry_address(r_.method(name)));
  }
  uint32_t factors_;
  IrRuntime r_;
  ThreadScope thread_;
  uint64_t odd_ = 0, even_ = 0;
  Random random_{7};
};

const InlinedBody* apply_in(const Profile& p, uint32_t root) {
  for (const auto& [key, body] : p.inlined) {
    if (key.root.function_index == root && key.path.size() == 1) return &body;
  }
  return nullptr;
}

uint64_t count_of(const InlinedSite& call, uint32_t function) {
  for (const auto& [key, entry] : call.table) {
    if (key.value == function) return entry.count;
  }
  return 0;
}

void expect_place(const Profile& p, uint32_t root, uint64_t argument, double even) {
  const InlinedBody* body = apply_in(p, root);
  ASSERT_NE(body, nullptr);
  uint64_t samples = body->blocks.at(1).count;
  EXPECT_GT(samples, 5'000u);
  ASSERT_EQ(body->sites.size(), 4u);
  const InlinedSite& call = body->sites.at({SlotKind::kCallTarget, 2});
  EXPECT_EQ(call.counts[0], 0u);
  EXPECT_EQ(call.samples, body->blocks.at(1).samples);
  EXPECT_EQ(count_of(call, kOdd) + count_of(call, kEven), samples);
  double share = static_cast<double>(count_of(call, kEven)) / static_cast<double>(samples);
  EXPECT_NEAR(share, even, 0.02);
  const InlinedSite& value = body->sites.at({SlotKind::kValue, 3});
  EXPECT_EQ(value.counts[0], samples);
  EXPECT_EQ(value.table, (Table{{{0, argument}, value.table.begin()->second}}));
  EXPECT_EQ(value.table.begin()->second.count, samples);
  const InlinedSite& range = body->sites.at({SlotKind::kRange, 4});
  auto result = [&](uint32_t add) {
    return static_cast<uint64_t>(
        int64_t{static_cast<int32_t>(powered(static_cast<uint32_t>(argument), add))});
  };
  EXPECT_EQ(range.counts[0], samples);
  EXPECT_EQ(range.counts[slot_word::kMin], result(0));
  EXPECT_EQ(range.counts[slot_word::kMax], result(1));
  const InlinedSite& hit = body->sites.at({SlotKind::kCounter, 5});
  EXPECT_EQ(hit.counts[0], samples);
  EXPECT_EQ(hit.estimates[0], body->blocks.at(1).estimate);
}

TEST(ObserveInlinedSites, each_place_has_its_own_and_the_trace_says_the_same) {
  CollectingSink sink;
  Options o = following();
  o.count_optimized = false;  // traces hold only counts of instrumented copies
  Places w(&sink, kFactors, o);
  w.both(300'000, 90, 40);
  const Profile seen = w.profile();
  expect_place(seen, kLeft, 3, 0.9);
  expect_place(seen, kRight, 5, 0.4);
  EXPECT_TRUE(w.decisions("left", "re_instrument", "").empty());
  ProfileBuilder builder;
  for (const TraceEvent& e : sink.events) ASSERT_TRUE(builder.add(e).ok());
  EXPECT_EQ(builder.skipped(), 0u);
  EXPECT_EQ(builder.profile().inlined, seen.inlined);
}

// Only the target changes: it is not inlined into this code, and all blocks run as before.
TEST(ObserveInlinedSites,
     a_guess_in_a_body_that_goes_wrong_is_drift_and_is_made_anew_in_its_place) {
  Places w;
  w.both(400'000, 95, 95);
  ASSERT_TRUE(w.decisions("left", "re_instrument", "").empty());
  size_t versions = w.versions("left"), others = w.versions("right");
  uint64_t calls = 0;
  auto seen = [&] { return w.decisions("left", "re_instrument", "drift from earlier windows"); };
  for (; seen().empty() && calls < 100'000; calls += 100) w.both(100, 5, 95);
  EXPECT_LE(calls, (2 * 256 + 64) * kPickInterval * 5 / 4);
  ASSERT_EQ(seen().size(), 1u);
  EXPECT_NE(seen()[0].reason.find(" as a target of call 2 of apply at call 2 of left was"),
            std::string::npos)
      << seen()[0].reason;
  w.both(100'000, 5, 95);
  EXPECT_EQ(w.decisions("left", "specialize", "drift of").size(), 1u);
  EXPECT_EQ(w.versions("left"), versions + 1);
  // The new code is made from the targets at this place, whatever `apply` calls elsewhere.
  w.both(500'000, 5, 95);
  EXPECT_EQ(w.decisions("left", "specialize", "drift of").size(), 1u);
  EXPECT_EQ(w.versions("left"), versions + 1);
  EXPECT_EQ(w.versions("right"), others);
  EXPECT_TRUE(w.decisions("right", "re_instrument", "").empty());
}

// Small speculated targets are inlined: `odd`, which `apply` calls elsewhere, and `even` once it is
// called here.
TEST(ObserveInlinedSites, the_next_version_takes_in_what_is_called_in_its_place) {
  Places w(nullptr, 2);
  auto even_in_left = [&] {
    const Profile p = w.profile();
    return std::ranges::any_of(p.inlined, [](const auto& item) {
      const InlinedKey& key = item.first;
      return key.root.function_index == kLeft && key.path.size() == 2 &&
             key.path[1].callee.function_index == kEven;
    });
  };
  w.both(400'000, 0, 0);
  EXPECT_FALSE(even_in_left());
  w.both(600'000, 100, 0);
  EXPECT_EQ(w.decisions("left", "specialize", "drift of").size(), 1u);
  EXPECT_TRUE(even_in_left());
}

// ---- The next process -------------------------------------------------------------------------

// `apply` usually calls `odd`; in `left` it calls `even`, as a first process has seen.
class SavedPlaces : public testing::Test {
 protected:
  SavedPlaces() {
    char name[] = "/tmp/uptier-places-XXXXXX";
    dir_ = mkdtemp(name);
    options_.profile = dir_ + "/p.upf";
    options_.profile_decay = 1;        // no run is merely counted
    options_.count_optimized = false;  // only bodies that a copy has observed
    Places w(nullptr, 2, options_);
    w.both(100'000, 0, 0);
    w.only("left", 900'000, 99);
    EXPECT_EQ(w.decisions("left", "specialize", "drift of").size(), 1u);
    EXPECT_TRUE(w.runtime().save_profile().ok());
  }
  ~SavedPlaces() override { std::filesystem::remove_all(dir_); }

  // Returns the functions that are inlined into `apply` inside a root.
  static std::set<uint32_t> called_in(const Profile& p, uint32_t root) {
    std::set<uint32_t> found;
    for (const auto& [key, body] : p.inlined) {
      if (key.root.function_index != root || key.path.size() != 2) continue;
      found.insert(key.path[1].callee.function_index);
    }
    return found;
  }
  // Returns the same for the first version of a root.
  static std::set<uint32_t> first_called_in(Places& w, const char* name, uint32_t root,
                                            uint64_t even) {
    w.only(name, 100'000, even);
    EXPECT_EQ(w.versions(name), 1u);
    const MethodReport m = w.report(name);
    EXPECT_EQ(m.versions.front().tier, Tier::kOptimized);
    EXPECT_EQ(m.versions.front().inlined, 2u);  // `apply`, and its target there
    return called_in(w.profile(), root);
  }

  Result<Profile> read_file() const {
    std::ifstream in(options_.profile, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
    return file.ok() ? Result<Profile>(std::move(file->profile)) : file.error();
  }
  void write_file(const Profile& p) const {
    ProfileInfo info;
    info.runs = 1;
    info.weight = ProfileInfo::kRunWeight;
    const std::vector<std::byte> bytes = profile_to_file(p, info);
    std::ofstream(options_.profile, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  }

  std::string dir_;
  Options options_ = following();
};

TEST_F(SavedPlaces, first_code_guesses_what_the_call_reached_in_its_place) {
  Places w(nullptr, 2, options_);
  EXPECT_EQ(first_called_in(w, "left", kLeft, 100), std::set{kEven});
  EXPECT_EQ(first_called_in(w, "right", kRight, 0), std::set{kOdd});
  EXPECT_TRUE(w.decisions("left", "re_instrument", "").empty());
  EXPECT_TRUE(w.decisions("right", "re_instrument", "").empty());
}

TEST_F(SavedPlaces, a_place_that_has_changed_since_is_noticed_and_made_anew) {
  Places w(nullptr, 2, options_);
  EXPECT_EQ(first_called_in(w, "left", kLeft, 100), std::set{kEven});
  w.only("left", 400'000, 0);
  EXPECT_EQ(w.decisions("left", "specialize", "drift of").size(), 1u);
  EXPECT_EQ(w.versions("left"), 2u);
  EXPECT_EQ(called_in(w.profile(), kLeft), (std::set{kOdd, kEven}));
}

// Tests whether the first code of `left` speculated on the target that `apply` calls elsewhere:
// that is drift.
bool guessed_elsewhere(Places& w) {
  w.only("left", 100'000, 100);
  return !w.decisions("left", "re_instrument", "drift from the profile it was made from").empty();
}

TEST_F(SavedPlaces, what_was_seen_of_other_code_is_not_believed) {
  for (const uint64_t change : {0, 1}) {
    Profile saved = *read_file();
    for (auto& [key, body] : saved.inlined) body.code.back() += change;
    write_file(saved);
    Places w(nullptr, 2, options_);
    EXPECT_EQ(guessed_elsewhere(w), change != 0);
  }
}

TEST_F(SavedPlaces, a_few_calls_are_not_believed) {
  for (const uint64_t samples : {64, 63}) {
    Profile saved = *read_file();
    for (auto& [key, body] : saved.inlined) {
      for (auto& [at, site] : body.sites) site.samples = samples;
    }
    write_file(saved);
    Places w(nullptr, 2, options_);
    EXPECT_EQ(guessed_elsewhere(w), samples < 64);
  }
}

TEST_F(SavedPlaces, whoever_asks_is_told_of_the_place) {
  const Profile saved = *read_file();
  const InlinedBody* apply = apply_in(saved, kLeft);
  ASSERT_NE(apply, nullptr);
  const std::string root = profile::hex(apply->code[0]);
  const std::string key = "2:" + profile::hex(apply->code[1]) + "/call_target#2";
  Places w(nullptr, 2, options_);
  const std::optional<ProfileAnswer> left = w.runtime().query("uptier", root + "@left", key);
  ASSERT_TRUE(left) << to_text(saved);
  EXPECT_EQ(left->methods, 1u);
  EXPECT_EQ(left->samples, apply->sites.at({SlotKind::kCallTarget, 2}).samples);
  const auto& targets = std::get<TargetsAnswer>(left->what).targets;
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_EQ(targets[0].method.function_index, kEven);
  EXPECT_EQ(targets[0].count, count_of(apply->sites.at({SlotKind::kCallTarget, 2}), kEven));
}

// A table in a copy of `outer` holds stubs of methods that come and go; counts of removed ones are
// credited to no method.
TEST(ObserveInlinedSites, nothing_is_credited_to_the_next_method_of_a_place) {
  Workshop w(optimizing("4"));
  ThreadScope scope(*w.runtime);
  MethodId d = w.dispatcher(), often = w.adder(1);
  MethodId outer = w.add("outer", kDispatch, [d](FunctionBuilder& b) {
    Value args[] = {b.param(0), b.param(1)};
    b.ret(b.call(d, kDispatch, args));
  });
  for (uint64_t i = 0; i < 200'000; ++i) {
    ASSERT_EQ(w.call(outer, {w.address(often), i}).bits, i + 1);
  }
  constexpr uint64_t kCalls = 1000;
  for (uint64_t n = 3; n < 200; ++n) {
    MethodId m = w.at_least(5);
    for (uint64_t i = 0; i < kCalls; ++i) {
      ASSERT_EQ(w.call(outer, {w.address(m), i + 5}).bits, i + 5);
    }
    w.remove(m);
  }
  w.runtime->flush();
  const Profile p = w.runtime->profile();
  uint64_t others = 0;
  for (const auto& [key, body] : p.inlined) {
    for (const auto& [at, site] : body.sites) {
      if (at.first != SlotKind::kCallTarget) continue;
      others += site.counts[0];
      for (const auto& [callee, entry] : site.table) {
        if (callee.value == 1) continue;
        EXPECT_LE(entry.count, kCalls / 4) << callee.value;  // one call in 16 is sampled
      }
    }
  }
  EXPECT_GT(others, 100 * kCalls / 16);
}

}  // namespace
}  // namespace uptier::test::observe_inlined_sites_test
