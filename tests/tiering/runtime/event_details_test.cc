// What records of events say of versions that belong together, and of the parts of compilations.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/rare_path.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::event_details_test {
namespace {

using Kind = EventKind;

// Copies each record with its details.
class Keeper : public EventSubscriber {
 public:
  struct Kept {
    Event event;
    bool has_details = false;
    EventDetails details = {};
  };
  void on_event(const Event& e) noexcept override {
    kept.push_back({e, e.details != nullptr, e.details == nullptr ? EventDetails() : *e.details});
  }
  std::vector<Kept> kept;
};

Options at_once() {
  return options({{"policy", "always"},
                  {"workers", "0"},
                  {"interval", "2"},
                  {"adaptive", "off"},
                  {"deopt_cold", "on"},
                  {"cold_samples", "8"}});
}

constexpr const char* kTwice = R"(
func @leaf(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 3
  v2 = mul.i32 v0, v1
  return v2
}
func @twice(i32) -> i32 {
b0(v0: i32):
  v1 = call @leaf(v0)
  v2 = call @leaf(v1)
  return v2
}
)";

TEST(EventDetails, compilations_name_their_parts_and_the_inlined_methods) {
  Keeper all;
  IrRuntime r(parse_or_die(kTwice), at_once());
  ASSERT_TRUE(r.runtime->subscribe(all).ok());
  ThreadScope scope(*r.runtime);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(r.call("twice", {5}).bits, 45u);
  std::map<std::string, int> parts;
  int inlining = 0;
  for (const Keeper::Kept& k : all.kept) {
    const bool has = k.event.kind == Kind::kDescribed || k.event.kind == Kind::kCompiled;
    EXPECT_EQ(k.has_details, has) << event_kind_name(k.event.kind);
    uint64_t sum = 0;
    for (const EventPhase& p : k.details.phases) {
      ++parts[p.name];
      sum += p.duration_ns;
    }
    EXPECT_LE(sum, k.event.duration_ns);
    if (has) { EXPECT_GT(sum, 0u); }
    EXPECT_EQ(k.details.inlined.size(), k.details.inlined_methods);
    if (k.event.count == 0 || k.event.kind != Kind::kCompiled) continue;
    ++inlining;
    EXPECT_EQ(k.event.method, r.method("twice"));
    EXPECT_EQ(k.event.count, 2u) << "two bodies of one method";
    EXPECT_EQ(k.details.inlined, std::vector<MethodId>{r.method("leaf")});
  }
  EXPECT_GT(inlining, 0);
  for (const char* part : {"build", "verify", "describe", "baseline compiler", "inline_calls",
                           "lower", "allocate_registers", "emit"}) {
    EXPECT_GT(parts[part], 0) << part;
  }
}

TEST(EventDetails, a_version_names_the_one_before_and_a_frame_the_one_that_it_goes_to) {
  Keeper all;
  IrRuntime r(parse_or_die(kRare), at_once());
  ASSERT_TRUE(r.runtime->subscribe(all).ok());
  ThreadScope scope(*r.runtime);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(r.call("sum", {40}).bits, sum_of(40));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(r.call("sum", {2000}).bits, sum_of(2000));
  r.runtime->flush();
  std::map<uint64_t, Event> installed;
  int replaced = 0, left = 0;
  for (const Keeper::Kept& k : all.kept) {
    const Event& e = k.event;
    if (e.kind == Kind::kInstalled) {
      if (e.other_version != 0) {
        ++replaced;
        ASSERT_TRUE(installed.contains(e.other_version)) << "it came into service before";
        EXPECT_EQ(installed[e.other_version].loop, e.loop);
      }
      installed[e.version] = e;
    }
    if (e.kind != Kind::kLeft) continue;
    ++left;
    ASSERT_TRUE(installed.contains(e.other_version));
    EXPECT_EQ(installed[e.other_version].tier, Tier::kBaseline);
  }
  EXPECT_GT(replaced, 0);
  EXPECT_GT(left, 0);
}

TEST(EventDetails, nothing_is_timed_for_subscribers_of_other_kinds) {
  Keeper all;
  IrRuntime r(parse_or_die(kTwice), at_once());
  ASSERT_TRUE(r.runtime->subscribe(all, kinds_of(Kind::kInstalled)).ok());
  ThreadScope scope(*r.runtime);
  EXPECT_EQ(r.call("twice", {5}).bits, 45u);
  ASSERT_FALSE(all.kept.empty());
  for (const Keeper::Kept& k : all.kept) EXPECT_FALSE(k.has_details);
}

}  // namespace
}  // namespace uptier::test::event_details_test
