// Laws of the algebra of profiles that the test of merge does not cover.
#include <gtest/gtest.h>

#include "profile/algebra/algebra.h"
#include "profile/formats/export.h"
#include "profile/upf/profile_sum.h"
#include "profile/upf/uploads.h"
#include "tests/support/program_runs.h"
#include "tests/support/trace_samples.h"

namespace uptier::upf_algebra_test {
namespace {

using profile::UploadFate;
using test::Generator;

Profile merged(Profile a, const Profile& b) {
  merge(a, b);
  return a;
}

// A profile whose sums cannot saturate; each method has one schema.
Profile tame(Generator& generator) {
  Profile profile;
  for (uint32_t f = 0; f < 6; ++f) {
    if (generator.chance(3)) continue;
    Generator shape(f);
    MethodProfile m = generator.method({f % 2, f}, shape.schema(f));
    for (uint64_t& count : m.counts) count %= 1 << 20;
    for (auto& [site, table] : m.tables) {
      for (auto& [key, entry] : table) entry.count = entry.count % 1000 + 1;
    }
    m.weigh(1 + generator.below(9));
    for (uint64_t* n : {&m.calls, &m.sampled_calls, &m.iterations, &m.bursts, &m.weight_squares,
                        &m.guessed_calls}) {
      *n = *n % 1000 + 1;
    }
    profile.methods.emplace(m.key, std::move(m));
  }
  return profile;
}

// Keeps only the sums, which subtract can undo.
Profile sums_of(Profile profile) {
  for (auto& [key, m] : profile.methods) {
    m.name.clear();
    m.interval = 0;
    for (const Slot& slot : m.schema.slots) {
      const auto words = profile::words_of(slot.kind);
      for (size_t i = 0; i < words.size(); ++i) {
        if (!profile::is_sum(words[i].rule)) m.counts[slot.word + i] = 0;
      }
    }
  }
  return profile;
}

TEST(UpfAlgebra, subtract_undoes_merge) {
  Generator generator(21);
  for (int round = 0; round < 500; ++round) {
    const Profile a = tame(generator), b = tame(generator);
    Profile rest = merged(a, b);
    ASSERT_EQ(profile::subtract(rest, b), 0u);
    Profile expected = a;
    for (const auto& [key, m] : b.methods) {  // methods that only b had stay, without counts
      if (expected.methods.contains(key)) continue;
      Profile one;
      one.methods.emplace(key, m);
      ASSERT_EQ(profile::subtract(one, b), 0u);
      expected.methods.emplace(key, one.methods.at(key));
    }
    ASSERT_EQ(sums_of(rest), sums_of(expected));
  }
}

TEST(UpfAlgebra, subtract_stops_at_zero_and_says_so) {
  Profile a, b;
  MethodProfile m;
  m.schema = Schema::block_schema(2, 1);
  m.counts = {5, 1};
  m.weigh(1);
  a.methods.emplace(m.key, m);
  m.counts = {3, 4};
  m.weigh(1);
  b.methods.emplace(m.key, m);
  EXPECT_EQ(profile::subtract(a, b), 2u);  // the count and its estimate
  EXPECT_EQ(a.methods.begin()->second.counts, (std::vector<uint64_t>{2, 0}));
}

TEST(UpfAlgebra, top_of_top_is_top) {
  Generator generator(22);
  for (int round = 0; round < 200; ++round) {
    const Profile p = generator.profile();
    for (size_t n : {0u, 1u, 3u, 9u}) {
      ASSERT_EQ(profile::top(profile::top(p, 5), n), profile::top(p, std::min<size_t>(n, 5)));
    }
    ASSERT_EQ(profile::top(p, 100), p);
  }
}

TEST(UpfAlgebra, removing_the_empty_changes_no_sum) {
  Generator generator(23);
  for (int round = 0; round < 200; ++round) {
    Profile a = tame(generator), empty = tame(generator);
    for (auto& [key, m] : empty.methods) {
      m.counts.assign(m.counts.size(), 0);
      m.estimates = m.counts;
      m.tables.clear();
      m.calls = m.sampled_calls = m.iterations = m.bursts = m.weight_squares = m.guessed_calls = 0;
    }
    Profile lean = empty;
    ASSERT_EQ(profile::without_empty(lean), empty.methods.size());
    Profile sum = merged(a, empty);
    (void)profile::without_empty(sum);
    Profile expected = a;
    (void)profile::without_empty(expected);
    ASSERT_EQ(sums_of(sum), sums_of(expected));
  }
}

TEST(UpfAlgebra, scaled_sum_is_the_sum_of_scaled) {
  Generator generator(24);
  for (int round = 0; round < 200; ++round) {
    Profile a = tame(generator), b = tame(generator), sum = merged(a, b);
    for (Profile* p : {&a, &b, &sum}) ASSERT_EQ(*scale(*p, 3, 1), 0u);
    ASSERT_EQ(merged(a, b), sum);
  }
}

TEST(UpfAlgebra, infos_unite) {
  const auto info = [](uint64_t n) {
    ProfileInfo i;
    i.runs = n;
    i.weight = 1000 * n;
    i.time = n;
    i.interval = n % 2;
    i.host = std::string(1, static_cast<char>('a' + n));
    i.modules = {n, n + 10};
    i.uploads = {{n, n}};
    return i;
  };
  ProfileInfo ab = info(1), ba = info(2), left = info(1), right = info(2);
  ab += info(2);
  ba += info(1);
  EXPECT_EQ(ab, ba);
  left += info(2);
  left += info(3);
  right += info(3);
  ProfileInfo first = info(1);
  first += right;
  EXPECT_EQ(left, first);
  ProfileInfo none;
  none += info(1);
  EXPECT_EQ(none, info(1));
}

TEST(UpfAlgebra, plan_counts_every_run_once) {
  const auto ids = [](std::vector<uint64_t> runs) {
    ProfileInfo i;
    for (uint64_t r : runs) i.uploads.push_back({r, r});
    return i;
  };
  const ProfileInfo one = ids({1}), two = ids({2}), both = ids({1, 2}), other = ids({2, 3}),
                    unnamed = ids({});
  const auto plan = [](std::vector<const ProfileInfo*> list) {
    return profile::plan_uploads(list);
  };
  using enum UploadFate;
  EXPECT_EQ(plan({&one, &one, &two}), (std::vector{kSummed, kKnown, kSummed}));
  EXPECT_EQ(plan({&one, &two, &both}), (std::vector{kKnown, kKnown, kSummed}));
  EXPECT_EQ(plan({&both, &other}), (std::vector{kSummed, kConflict}));
  EXPECT_EQ(plan({&unnamed, &unnamed}), (std::vector{kSummed, kSummed}));
}

TEST(UpfAlgebra, percentiles_are_those_of_the_counts) {
  Profile p;
  MethodProfile m;
  m.schema = Schema::block_schema(4, 1);
  m.counts = {80, 0, 15, 5};
  m.weigh(1);
  p.methods.emplace(m.key, m);
  const profile::Summary s = profile::summarize(p);
  EXPECT_EQ(s.sites, 4u);
  EXPECT_EQ(s.seen, 3u);
  EXPECT_EQ(s.greatest, 80u);
  EXPECT_EQ(s.total, 100);
  EXPECT_EQ(s.percentiles[1].sites, 1u);
  EXPECT_EQ(s.percentiles[2].sites, 2u);
  EXPECT_EQ(s.percentiles[2].least, 15u);
  EXPECT_EQ(s.percentiles.back().sites, 3u);
}

// Merging with uptier and exporting gives the same as exporting and merging with llvm-profdata.
TEST(UpfAlgebra, merge_equals_that_of_llvm_profdata) {
  if (test::run_command("command -v llvm-profdata").code != 0) {
    GTEST_SKIP() << "SKIPPED: llvm-profdata is not installed, merges were not compared with its";
  }
  char name[] = "/tmp/uptier-upf-XXXXXX";
  const std::string dir = mkdtemp(name);
  Generator generator(25);
  const auto write = [&](const std::string& file, const Profile& p) {
    std::ofstream(dir + "/" + file) << profile::to_llvm_text(p);
  };
  const auto canonical = [&](const std::string& words) {
    const test::RunResult r = test::run_command(
        "cd " + dir + " && llvm-profdata merge -text -o out " + words + " && cat out");
    EXPECT_EQ(r.code, 0) << r.err;
    return r.out;
  };
  for (int round = 0; round < 10; ++round) {
    Profile a = tame(generator), b = tame(generator);
    for (Profile* p : {&a, &b}) {  // names are the same in all files
      for (auto& [key, m] : p->methods) m.name = "f" + std::to_string(key.function_index);
    }
    write("a", a);
    write("b", b);
    write("sum", merged(a, b));
    ASSERT_EQ(canonical("a b"), canonical("sum"));
    Profile three = a;
    ASSERT_EQ(*scale(three, 3, 1), 0u);
    write("weighted", merged(three, b));
    ASSERT_EQ(canonical("--weighted-input=3,a b"), canonical("weighted"));
  }
  test::run_command("rm -r " + dir);
}

}  // namespace
}  // namespace uptier::upf_algebra_test
