// Calls in profiles: chunks that round-trip, sums in any order, and the calls of real runs.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "profile/upf/calls.h"
#include "profile/upf/read.h"
#include "tests/support/program_runs.h"
#include "tests/support/random_times.h"
#include "uptier/profile_file.h"

namespace uptier::upf_calls_test {
namespace {

using profile::UpfKind;

CallProfile random_calls(std::mt19937_64& random) {
  const auto key = [&] {
    return MethodKey{random() % 3 * 0x123456789abcdefull, static_cast<uint32_t>(random() % 6)};
  };
  CallProfile calls;
  for (int i = 0; i < 5; ++i) {
    calls.graph[{key(), key()}] = random() >> (random() % 64);
    calls.first[key()] = {random() % 1000, 1000};
    CodeShape& shape = calls.shapes[key()];
    shape = {};
    shape.cfg_hash = random() % 4;
    const uint64_t blocks = 1 + random() % 5;
    for (uint64_t b = 0; b < blocks; ++b) {
      shape.successors.add_list();
      for (uint64_t n = random() % 3; n > 0; --n) {
        shape.successors.add(static_cast<SiteId>(1 + random() % blocks));
      }
    }
    for (SiteId block = 1; block <= shape.successors.size(); ++block) {
      const auto kind = static_cast<AnchorKind>(1 + random() % 5);
      shape.anchors.push_back({kind, random(), block, static_cast<SiteId>(random() % 99)});
    }
  }
  calls.time = test::random_times([&](uint64_t n) { return random() % n; }, key);
  return calls;
}

CallProfile sum_of(CallProfile a, const CallProfile& b) {
  a += b;
  return a;
}

TEST(UpfCalls, what_is_written_comes_back) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    const CallProfile calls = random_calls(random);
    const auto file = profile_to_file({}, {}, {}, nullptr, &calls);
    const Result<ProfileFile> back = profile_from_file(file);
    ASSERT_TRUE(back.ok() && back->warnings.empty());
    ASSERT_EQ(back->calls, calls);
  }
  EXPECT_TRUE(profile_from_file(profile_to_file({}, {}))->calls.empty());
}

TEST(UpfCalls, sum_is_associative_and_commutative) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    const CallProfile a = random_calls(random), b = random_calls(random), c = random_calls(random);
    ASSERT_EQ(sum_of(a, b), sum_of(b, a));
    ASSERT_EQ(sum_of(sum_of(a, b), c), sum_of(a, sum_of(b, c)));
    ASSERT_EQ(sum_of(a, {}), a);
    CallProfile taken = a;
    ASSERT_EQ(taken += CallProfile(b), sum_of(a, b));
  }
}

TEST(UpfCalls, lists_of_sites_compare_as_vectors_of_vectors) {
  std::mt19937_64 random(3);
  using Lists = std::vector<std::vector<SiteId>>;
  const auto random_lists = [&] {
    Lists lists(random() % 4);
    for (auto& list : lists) {
      for (uint64_t n = random() % 3; n > 0; --n) list.push_back(static_cast<SiteId>(random() % 3));
    }
    return lists;
  };
  const auto flat = [](const Lists& lists) {
    SiteLists made;
    for (const auto& list : lists) {
      made.add_list();
      for (const SiteId site : list) made.add(site);
    }
    return made;
  };
  for (int round = 0; round < 2000; ++round) {
    const Lists a = random_lists(), b = random_lists();
    ASSERT_EQ(flat(a) <=> flat(b), a <=> b);
    ASSERT_EQ(flat(a) == flat(b), a == b);
  }
}

TEST(UpfCalls, order_is_that_of_the_mean_position) {
  CallProfile a, b;
  a.first = {{{1, 1}, {0, 1000}}, {{1, 2}, {1, 1000}}, {{1, 3}, {2, 1000}}};
  b.first = {{{1, 3}, {0, 1000}}, {{1, 2}, {5, 1000}}};
  a += b;
  EXPECT_EQ(a.order(), (std::vector<MethodKey>{{1, 1}, {1, 3}, {1, 2}}));
  a.scale(1, 2);  // a faded call keeps its position
  EXPECT_DOUBLE_EQ(a.first.at({1, 2}).mean(), 3.0);
}

TEST(UpfCalls, no_bytes_do_harm) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20000; ++round) {
    const CallProfile calls = random_calls(random);
    for (const UpfKind kind : profile::kCallKinds) {
      profile::Bytes part = profile::call_part(kind, calls);
      part[random() % part.size()] ^= static_cast<std::byte>(1 + random() % 255);
      part.resize(part.size() - random() % 2 * (random() % part.size()));
      CallProfile read;
      const Status taken = profile::take_call_part(kind, part, read);
      if (!taken.ok()) {
        ASSERT_TRUE(read.empty());
        continue;
      }
      for (const auto& [key, shape] : read.shapes) {
        for (const Anchor& a : shape.anchors) ASSERT_LE(a.block, shape.successors.size());
      }
    }
    if (round > 500) round += 19;  // the later ones differ less
  }
}

TEST(UpfCalls, run_leaves_who_called_whom_and_who_was_first) {
  char name[] = "/tmp/uptier-calls-XXXXXX";
  const std::string dir = mkdtemp(name), path = dir + "/p.upf";
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(test::run_tool("run --tier=instrumented --profile " + path + " " +
                             test::wasm_path("objects"))
                  .code,
              0);
    const std::string bytes = test::slurp(path);
    const Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(file.ok());
    // Every counted call is a call of the callee, unless the host made it. In a single run both
    // numbers are exact.
    std::map<MethodKey, uint64_t> calls;
    for (const auto& [call, count] : file->calls.graph) calls[call.second] += count;
    uint64_t compared = 0;
    for (const auto& [key, m] : file->profile.methods) {
      if (m.name == "_start.command_export") continue;
      if (i == 0) { EXPECT_EQ(calls[key], m.calls) << m.name; }
      ++compared;
    }
    EXPECT_GT(compared, 20u);
    const std::vector<MethodKey> order = file->calls.order();
    ASSERT_GE(order.size(), compared);
    EXPECT_EQ(file->profile.methods.at(order.front()).name, "_start.command_export");
    EXPECT_EQ(file->calls.shapes.size(), file->profile.methods.size());
  }
  const test::RunResult calls = test::run_tool("profile show --calls --top 100 " + path);
  EXPECT_NE(calls.out.find("disc_area"), std::string::npos) << calls.out;
  const test::RunResult order = test::run_tool("profile show --order --top 3 " + path);
  EXPECT_NE(order.out.find("_start"), std::string::npos) << order.out;
  std::filesystem::remove_all(dir);
}

std::vector<MethodKey> order_in(const std::string& path) {
  const std::string bytes = test::slurp(path);
  const Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
  return file.ok() ? file->calls.order() : std::vector<MethodKey>();
}

// The worker compiles code in its own order.
TEST(UpfCalls, code_that_is_made_ahead_does_not_change_who_was_first) {
  char name[] = "/tmp/uptier-order-XXXXXX";
  const std::string dir = mkdtemp(name), path = dir + "/p.upf";
  const std::string command = "run --profile " + path + " " + test::wasm_path("objects");
  ASSERT_EQ(test::run_tool(command).code, 0);
  const std::vector<MethodKey> first = order_in(path);
  ASSERT_GT(first.size(), 20u);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(test::run_tool(command).code, 0);
    EXPECT_EQ(order_in(path), first);
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace uptier::upf_calls_test
