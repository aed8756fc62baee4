// Caps and quorums: which voters count in a sum, and which of its parts are reported.
#include "profile/algebra/quorum.h"

#include <algorithm>
#include <random>

#include "tests/support/tool_dir.h"
#include "tests/support/trace_samples.h"

namespace uptier::profile_quorum_test {
namespace {

using profile::cap_factors;
using profile::Contribution;
using profile::Quorum;
using test::Generator;

Profile sum_of(const std::vector<Profile>& parts) {
  Profile sum;
  for (const Profile& p : parts) merge(sum, p);
  return sum;
}

Quorum votes_of(const std::vector<Profile>& parts, const std::vector<uint32_t>& order) {
  Quorum quorum;
  for (const uint32_t voter : order) {
    for (const auto& [key, m] : parts[voter].methods) quorum.see(voter, m);
    quorum.see(voter, parts[voter].inlined);
  }
  return quorum;
}

// Random profiles whose counts cannot saturate.
std::vector<Profile> some(Generator& generator, size_t n) {
  std::vector<Profile> parts;
  for (size_t i = 0; i < n; ++i) {
    parts.push_back(generator.profile());
    for (auto& [key, m] : parts.back().methods) {
      for (uint64_t& count : m.counts) count %= 1000;
      for (auto& [site, table] : m.tables) {
        for (auto& [at, entry] : table) entry.count = entry.count % 1000 + 1;
      }
      m.weigh(1);
    }
  }
  return parts;
}

// Returns the sum of a site's table and its `other`.
uint64_t mass_of(const Profile& p) {
  uint64_t sum = 0;
  for (const auto& [key, m] : p.methods) {
    for (const Slot& slot : m.schema.slots) {
      const bool target = slot.kind == SlotKind::kCallTarget;
      if (target) sum += *m.count(slot.kind, slot.site);
    }
  }
  return sum;
}

TEST(ProfileQuorum, order_of_voters_does_not_matter) {
  Generator generator(41);
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Profile> parts = some(generator, 4);
    std::vector<uint32_t> order = {0, 1, 2, 3};
    Profile first = sum_of(parts);
    votes_of(parts, order).finish(first, 3);
    std::shuffle(order.begin(), order.end(), random);
    Profile second = sum_of(parts);
    votes_of(parts, order).finish(second, 3);
    ASSERT_EQ(first, second);
  }
}

TEST(ProfileQuorum, finishing_twice_is_finishing_by_the_greater) {
  Generator generator(42);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Profile> parts = some(generator, 4);
    const Quorum quorum = votes_of(parts, {0, 1, 2, 3});
    for (const auto& [a, b] : {std::pair(2, 3), std::pair(3, 2), std::pair(4, 1)}) {
      Profile twice = sum_of(parts), once = twice;
      quorum.finish(twice, static_cast<uint64_t>(a));
      quorum.finish(twice, static_cast<uint64_t>(b));
      quorum.finish(once, static_cast<uint64_t>(std::max(a, b)));
      ASSERT_EQ(twice, once);
    }
  }
}

TEST(ProfileQuorum, kept_methods_keep_their_mass) {
  Generator generator(43);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Profile> parts = some(generator, 4);
    const Profile sum = sum_of(parts);
    const Quorum quorum = votes_of(parts, {0, 1, 2, 3});
    Profile none = sum;
    EXPECT_EQ(quorum.finish(none, 0).methods, 0u);
    ASSERT_EQ(none, sum);
    Profile kept = sum;
    const Quorum::Report report = quorum.finish(kept, 2);
    ASSERT_EQ(kept.methods.size() + report.methods, sum.methods.size());
    Profile same = sum;
    std::erase_if(same.methods, [&](const auto& m) { return !kept.methods.contains(m.first); });
    ASSERT_EQ(mass_of(kept), mass_of(same));
    for (const auto& [key, m] : kept.methods) {
      ASSERT_TRUE(m.check().ok());
      ASSERT_EQ(m.calls, sum.methods.at(key).calls);
      for (const auto& [site, table] : m.tables) {
        for (const auto& [at, entry] : table) {
          size_t voters = 0;
          for (const Profile& p : parts) {
            const MethodProfile* own = p.find(key);
            const bool same_code = own != nullptr && own->schema.cfg_hash == m.schema.cfg_hash;
            const Table* t = same_code ? own->table(site.first, site.second) : nullptr;
            voters += t != nullptr && t->contains(at) ? 1 : 0;
          }
          ASSERT_GE(voters, 2u);
        }
      }
    }
  }
}

// Why a quorum is a finishing step: each of two sums may lack a method that both together would
// have kept.
TEST(ProfileQuorum, does_not_commute_with_merge) {
  MethodProfile m;
  m.schema = Schema::block_schema(1, 1);
  m.counts = {1};
  m.weigh(1);
  Profile p;
  p.methods.emplace(m.key, m);
  Quorum both, one;
  both.see(0, m);
  both.see(1, m);
  one.see(0, m);
  Profile apart = p, together = p;
  one.finish(apart, 2);
  both.finish(together, 2);
  EXPECT_TRUE(apart.methods.empty());
  EXPECT_EQ(together.methods.size(), 1u);
}

TEST(ProfileQuorum, caps_are_a_function_of_the_set) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<Contribution> inputs;
    for (size_t i = random() % 9; i > 0; --i) {
      inputs.push_back({std::string(1, static_cast<char>('a' + random() % 3)), random() % 5});
    }
    const uint64_t cap = random() % 6;
    const std::vector<profile::Fraction> factors = cap_factors(inputs, cap);
    std::map<std::string, double> counted, all;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto runs = static_cast<double>(inputs[i].runs);
      counted[inputs[i].voter] += runs * static_cast<double>(factors[i].numerator) /
                                  static_cast<double>(factors[i].denominator);
      all[inputs[i].voter] += runs;
    }
    for (const auto& [voter, runs] : counted) {
      const double most = cap == 0 ? all[voter] : std::min(all[voter], static_cast<double>(cap));
      ASSERT_NEAR(runs, most, 1e-9);
    }
    // The same factors in another order.
    std::vector<size_t> order(inputs.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Contribution> shuffled;
    for (const size_t i : order) shuffled.push_back(inputs[i]);
    const std::vector<profile::Fraction> again = cap_factors(shuffled, cap);
    for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(again[i], factors[order[i]]);
  }
}

// Calls are reported like methods: with enough voters, and between methods that are kept.
TEST(ProfileQuorum, calls_need_votes_too) {
  const MethodKey a{1, 1}, b{1, 2}, c{1, 3};
  MethodProfile m;
  m.schema = Schema::block_schema(1, 9);
  m.counts = {1};
  m.weigh(1);
  const auto method = [&](const MethodKey& key) {
    MethodProfile one = m;
    one.key = key;
    return one;
  };
  CallProfile common, secret;
  common.graph = {{{a, b}, 10}, {{b, c}, 3}};
  common.shapes[a] = {9, {{}}, {}};
  common.first = {{a, {0, 1000}}, {c, {1, 1000}}};
  secret.graph = {{{a, a}, 1}};
  secret.shapes[b] = {9, {{}}, {{AnchorKind::kCall, 7, 1, 1}}};
  Quorum quorum;
  for (const uint32_t voter : {0u, 1u}) {
    quorum.see(voter, method(a));
    quorum.see(voter, method(b));
    quorum.see(voter, common);
  }
  quorum.see(1, method(c));
  quorum.see(1, secret);
  Profile sum;
  for (const MethodKey& key : {a, b, c}) sum.methods.emplace(key, method(key));
  CallProfile calls = common;
  calls += secret;
  CallProfile all = calls;
  EXPECT_EQ(quorum.finish(all, sum, 0), 0u);
  EXPECT_EQ(all, calls);
  EXPECT_EQ(quorum.finish(sum, 2).methods, 1u);
  EXPECT_EQ(quorum.finish(calls, sum, 2), 2u);  // the call to c, which is left out, and the call
                                                // with one voter
  EXPECT_EQ(calls.graph, (std::map<CallProfile::Call, uint64_t>{{{a, b}, 10}}));
  EXPECT_EQ(calls.shapes.size(), 1u);
  EXPECT_TRUE(calls.shapes.contains(a));
  EXPECT_EQ(calls.first.size(), 1u);
}

using MergeTool = test::ToolDir;

Profile one_method(uint32_t function, uint64_t count, TableKey callee) {
  MethodProfile m;
  m.key = {1, function};
  m.name = "f" + std::to_string(function);
  m.schema.cfg_hash = 7;
  m.schema.add(SlotKind::kBlock, 1);
  m.schema.add(SlotKind::kCallTarget, 2);
  m.counts = {count, 0};
  m.tables[{SlotKind::kCallTarget, 2}][callee] = {count, count};
  m.weigh(1);
  m.calls = count;
  Profile p;
  p.methods.emplace(m.key, m);
  return p;
}

TEST_F(MergeTool, hosts_are_capped_and_have_to_agree) {
  // Host a wrote three files, b and c one each. Only c has seen method 2.
  const auto put = [&](const std::string& name, const std::string& host, const Profile& p) {
    static uint64_t n = 0;
    ProfileInfo info;
    info.host = host;
    info.runs = 1;
    info.weight = 1000;
    info.uploads = {{++n, n}};
    write(name, p, info);
  };
  for (const char* name : {"a1", "a2", "a3"}) put(name, "a", one_method(1, 300, {1, 10}));
  put("b", "b", one_method(1, 40, {1, 10}));
  Profile c = one_method(1, 5, {1, 11});
  merge(c, one_method(2, 6, {1, 10}));
  put("c", "c", c);
  const auto sum = [&](const std::string& words) {
    const test::RunResult r = tool("profile merge -o sum " + words);
    EXPECT_EQ(r.code, 0) << r.err;
    return read("sum");
  };
  const auto block = [](const ProfileFile& f) { return f.profile.methods.at({1, 1}).counts[0]; };
  EXPECT_EQ(block(sum("a1 a2 a3 b c")), 945u);
  EXPECT_EQ(block(sum("--cap-per-host 1 a1 a2 a3 b c")), 300u + 40 + 5);
  EXPECT_EQ(block(sum("--cap-per-host 2 c a3 b a1 a2")), 600u + 40 + 5);
  EXPECT_EQ(sum("--cap-per-host 1 a1 a2 a3 b c").profile,
            sum("--cap-per-host 1 c b a2 a3 a1").profile);
  EXPECT_EQ(sum("--cap-per-host 1 a1 a2 a3 b c").info.weight, 2999u);  // three times 333, and 2000
  EXPECT_EQ(sum("--cap-per-host 3 a1 a2 a3 b c").profile, sum("a1 a2 a3 b c").profile);
  EXPECT_EQ(sum("--cap-per-host 1 --by-file a1 a2 a3 b c").profile, sum("a1 a2 a3 b c").profile);

  const test::RunResult r = tool("profile merge -o sum --quorum 2 a1 a2 a3 b c");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("quorum of 2, 3 voted: 1 methods left out, 1 entries of tables became"),
            std::string::npos)
      << r.err;
  const ProfileFile two = read("sum");
  ASSERT_EQ(two.profile.methods.size(), 1u);
  const MethodProfile& m = two.profile.methods.at({1, 1});
  EXPECT_EQ(m.counts, (std::vector<uint64_t>{945, 5}));
  EXPECT_EQ(m.tables.at({SlotKind::kCallTarget, 2}).size(), 1u);
  EXPECT_TRUE(sum("--quorum 3 a1 a2 a3 b").profile.methods.empty());
  EXPECT_EQ(sum("--quorum 3 --by-file a1 a2 a3 b").profile.methods.size(), 1u);
  EXPECT_EQ(sum("--quorum 1 a1 a2 a3 b c").profile, sum("a1 a2 a3 b c").profile);
}

}  // namespace
}  // namespace uptier::profile_quorum_test
