// The observation of a method is planned when it is called often enough to be counted, not before.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/support/program_runs.h"
#include "tests/support/workshop.h"
#include "uptier/profile_file.h"

namespace uptier::test::plan_late_test {
namespace {

Options observing(const std::string& profile = "") {
  Options o = options({{"policy", "never"}, {"measure_rates", "off"}});
  o.profile = profile;
  return o;
}

const MethodProfile* profile_of(const Profile& p, uint32_t function) {
  return p.find({1, function});
}

void call(Workshop& shop, MethodId m, int times) {
  for (int i = 0; i < times; ++i) ASSERT_EQ(shop.call(m, {7}).bits, 40u);
  shop.runtime->flush();
}

// Waits for the worker, which makes instrumented copies.
bool has_copy(Workshop& shop, MethodId m) {
  auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < end) {
    for (const MethodReport& r : shop.runtime->report().methods) {
      auto instrumented = [](const VersionReport& v) { return v.copy == Copy::kInstrumented; };
      if (r.method == m && std::ranges::any_of(r.versions, instrumented)) return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(PlanLate, a_method_comes_into_the_profile_with_its_instrumented_copy) {
  Workshop shop(observing());
  ThreadScope attached(*shop.runtime);
  MethodId m = shop.at_least(40);
  call(shop, m, 20);
  EXPECT_EQ(profile_of(shop.runtime->profile(), 0), nullptr);
  call(shop, m, 100);
  ASSERT_TRUE(has_copy(shop, m));
  call(shop, m, 5000);
  Profile p = shop.runtime->profile();
  const MethodProfile* seen = profile_of(p, 0);
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->calls, 5120u) << "those before the copy too";
  EXPECT_GT(seen->sampled_calls, 0u);
  const Slot* less = seen->schema.find(SlotKind::kBlock, 2);
  const Slot* other = seen->schema.find(SlotKind::kBlock, 3);
  ASSERT_TRUE(less != nullptr && other != nullptr);
  EXPECT_EQ(seen->counts[less->word], seen->sampled_calls);
  EXPECT_EQ(seen->counts[other->word], 0u);
}

TEST(PlanLate, what_calls_alone_tell_is_in_the_profile_at_once) {
  Workshop shop(observing());
  ThreadScope attached(*shop.runtime);
  MethodId m = shop.adder(33);
  call(shop, m, 3);
  Profile p = shop.runtime->profile();
  const MethodProfile* seen = profile_of(p, 0);
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->calls, 3u);
  EXPECT_EQ(seen->counts, std::vector<uint64_t>{3});
}

// For a method that was never counted, a file holds its calls and the order of its first call; the
// next process compiles it ahead of time.
TEST(PlanLate, a_saved_profile_keeps_the_order_of_calls_that_were_not_counted) {
  char name[] = "/tmp/uptier-late-XXXXXX";
  const std::string dir = mkdtemp(name), path = dir + "/p.upf";
  {
    Workshop shop(observing(path));
    ThreadScope attached(*shop.runtime);
    MethodId first = shop.at_least(40);
    MethodId second = shop.adder(33);
    call(shop, second, 1);
    call(shop, first, 2);
    EXPECT_TRUE(shop.runtime->save_profile());
  }
  {
    auto bytes = slurp(path);
    auto file = profile_from_file(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(file.ok());
    const MethodProfile* first = profile_of(file->profile, 0);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->calls, 2u);
    EXPECT_EQ(first->guessed_calls, 2u);
    EXPECT_EQ(file->calls.order(), (std::vector<MethodKey>{{1, 1}, {1, 0}}));
  }
  {
    Workshop shop(observing(path));
    ThreadScope attached(*shop.runtime);
    MethodId first = shop.at_least(40);
    call(shop, shop.adder(33), 1);
    auto made = [&] {
      for (const MethodReport& r : shop.runtime->report().methods) {
        if (r.method == first) return !r.versions.empty();
      }
      return false;
    };
    auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!made() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(made()) << "though it was not called";
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace uptier::test::plan_late_test
