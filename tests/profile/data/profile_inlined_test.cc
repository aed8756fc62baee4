// Counts of inlined bodies by place: sums, text, and the chunk of a profile file. The tests of
// profiles show that sums do not depend on order and that every format round-trips; their Generator
// makes inlined bodies too.
#include <gtest/gtest.h>

#include <array>

#include "profile/algebra/algebra.h"
#include "profile/algebra/quorum.h"
#include "profile/base/varint.h"
#include "profile/data/inlined.h"
#include "profile/formats/tsv.h"
#include "profile/upf/inlined.h"
#include "profile/upf/read.h"
#include "profile/upf/write.h"
#include "tests/support/golden.h"
#include "tests/support/trace_samples.h"
#include "uptier/profile_file.h"

namespace uptier::profile_inlined_test {
namespace {

using profile::Bytes;
using test::Generator;

const InlinedKey kPlace{{0xa1, 7}, {{5, {0xa1, 8}}, {9, {0xb2, 1}}}};

Profile one(InlinedKey key, InlinedBody body) {
  Profile p;
  p.inlined.emplace(std::move(key), std::move(body));
  return p;
}

// Three methods: the last one is inlined into the second, and that one into the first.
Profile sample() {
  Profile p = one(kPlace, {{0x11, 0x22, 0x33}, {{1, {64, 1024, 64}}, {3, {3, 3, 32}}}});
  p.inlined[{{0xa1, 7}, {{5, {0xa1, 8}}}}] = {{0x11, 0x22}, {{1, {64, 1024, 64}}}};
  for (const auto& [index, name] : {std::pair(7u, "root"), std::pair(8u, "mid\ndle")}) {
    MethodProfile m;
    m.key = {0xa1, index};
    m.name = name;
    m.schema = Schema::block_schema(1, 0x11 * (index - 6));
    m.counts = {9};
    m.weigh(2);
    p.methods.emplace(m.key, std::move(m));
  }
  return p;
}

Profile merged(Profile a, const Profile& b) {
  merge(a, b);
  return a;
}

TEST(ProfileInlined, blocks_are_united_and_their_numbers_summed) {
  const Profile a = one(kPlace, {{1, 2, 3}, {{1, {4, 40, 4}}, {2, {0, 0, 4}}}});
  const Profile b = one(kPlace, {{1, 2, 3}, {{1, {1, UINT64_MAX, 2}}, {9, {7, 7, 2}}}});
  Profile sum = a;
  EXPECT_EQ(merge(sum, b), (MergeReport{0, 0, 1, {}}));
  EXPECT_EQ(sum,
            one(kPlace, {{1, 2, 3}, {{1, {5, UINT64_MAX, 6}}, {2, {0, 0, 4}}, {9, {7, 7, 2}}}}));
}

TEST(ProfileInlined, other_code_is_dropped_and_said_never_mixed) {
  const Profile lesser = one(kPlace, {{1, 9, 9}, {{1, {4, 40, 4}}}});
  const Profile greater = one(kPlace, {{2, 1, 1}, {{1, {1, 10, 1}}}});
  for (const bool swap : {false, true}) {
    Profile sum = swap ? greater : lesser;
    EXPECT_EQ(merge(sum, swap ? lesser : greater), (MergeReport{0, 0, 0, {{0xa1, 7}}}));
    EXPECT_EQ(sum, greater);
  }
}

TEST(ProfileInlined, what_breaks_a_rule_is_left_out_of_sums_and_files) {
  const InlinedBlock some{1, 1, 1};
  const std::pair<InlinedKey, InlinedBody> broken[] = {
      {{{1, 1}, {}}, {{1}, {{1, some}}}},
      {{{1, 1}, {{0, {1, 2}}}}, {{1, 2}, {{1, some}}}},
      {{{1, 1}, {{4, {1, 2}}}}, {{1}, {{1, some}}}},
      {{{1, 1}, {{4, {1, 2}}}}, {{1, 2}, {}}},
      {{{1, 1}, {{4, {1, 2}}}}, {{1, 2}, {{0, some}}}},
      {{{1, 1}, {{4, {1, 2}}}}, {{1, 2}, {{1, {}}}}},
  };
  for (const auto& [key, body] : broken) {
    EXPECT_FALSE(body.check(key).ok());
    Profile sum = sample();
    EXPECT_EQ(merge(sum, one(key, body)).dropped, (std::vector<MethodKey>{{1, 1}}));
    EXPECT_EQ(sum, sample());
    EXPECT_EQ(to_text(one(key, body)).find("uptier-profile 1\n\n# left out: inlined body: "), 0u);
    uint64_t dropped = 0;
    const Bytes file = profile_to_file(one(key, body), {}, {}, &dropped);
    EXPECT_EQ(dropped, 1u);
    EXPECT_EQ(profile_from_file(file)->profile, Profile{});
    // A broken body in the sum is replaced.
    sum = one(key, body);
    EXPECT_EQ(merge(sum, one(key, {{1, 2}, {{1, some}}})).dropped.size(), 1u);
  }
}

// Numbers that cannot saturate.
Profile tame(Generator& generator) {
  Profile p;
  for (auto& [key, body] : generator.profile().inlined) {
    p.inlined.emplace(key, body);
    auto& kept = p.inlined[key];
    kept.code.assign(kept.code.size(), 7);
    for (auto& [site, b] : kept.blocks) {
      b = {b.count % 1000, b.estimate % 1000, 1 + b.samples % 1000};
    }
    // Keeps only kinds that add up: the other kinds keep an extreme or the larger value.
    std::erase_if(kept.sites, [](const auto& item) {
      const SlotKind kind = item.first.first;
      return kind == SlotKind::kValue || kind == SlotKind::kRange || kind == SlotKind::kGauge;
    });
    for (auto& [at, s] : kept.sites) {
      for (auto* words : {&s.counts, &s.estimates}) {
        for (uint64_t& n : *words) n %= 1000;
      }
      for (auto& [entry, seen] : s.table) seen = {1 + seen.count % 1000, seen.estimate % 1000};
      s.samples = 1 + s.samples % 1000;
    }
    if (!kept.check(key).ok()) p.inlined.erase(key);
  }
  return p;
}

TEST(ProfileInlined, subtract_undoes_merge) {
  Generator generator(51);
  for (int round = 0; round < 500; ++round) {
    const Profile a = tame(generator), b = tame(generator);
    Profile rest = merged(a, b);
    ASSERT_EQ(profile::subtract(rest, b), 0u);
    ASSERT_EQ(rest, a);
  }
  Profile little = one(kPlace, {{1, 2, 3}, {{1, {4, 40, 4}}}});
  EXPECT_EQ(profile::subtract(little, one(kPlace, {{1, 2, 3}, {{1, {5, 1, 4}}, {2, {1, 0, 0}}}})),
            2u);
  EXPECT_EQ(little, one(kPlace, {{1, 2, 3}, {{1, {0, 39, 0}}}}));
  EXPECT_EQ(profile::subtract(little, one(kPlace, {{1, 2, 4}, {{1, {0, 39, 0}}}})), 0u);
  EXPECT_EQ(little.inlined.size(), 1u);  // that was of other code
}

TEST(ProfileInlined, scaled_sum_is_the_sum_of_scaled_and_zeros_go) {
  Generator generator(52);
  for (int round = 0; round < 200; ++round) {
    Profile a = tame(generator), b = tame(generator), sum = merged(a, b);
    for (Profile* p : {&a, &b, &sum}) ASSERT_EQ(*scale(*p, 3, 1), 0u);
    ASSERT_EQ(merged(a, b), sum);
  }
  Profile p = sample();
  ASSERT_TRUE(scale(p, 1, 40).ok());
  EXPECT_EQ(p.inlined,
            (InlinedBodies{{kPlace, {{0x11, 0x22, 0x33}, {{1, {1, 25, 1}}}}},
                           {{{0xa1, 7}, {{5, {0xa1, 8}}}}, {{0x11, 0x22}, {{1, {1, 25, 1}}}}}}));
  ASSERT_TRUE(scale(p, 0, 1).ok());
  EXPECT_TRUE(p.inlined.empty());
}

// ---- Sites ------------------------------------------------------------------------------------

InlinedSite calls(uint64_t other, uint64_t first, uint64_t second, uint64_t samples) {
  return {{other},
          {16 * other},
          {{{0xa1, 3}, {first, 16 * first}}, {{0xa1, 4}, {second, second}}},
          samples};
}
InlinedSite range(uint64_t count, int64_t sum, int64_t min, int64_t max) {
  const auto bits = [](int64_t v) { return static_cast<uint64_t>(v); };
  const uint64_t high = sum < 0 ? UINT64_MAX : 0;
  return {
      {count, bits(sum), high, bits(min), bits(max)}, {count, bits(sum), high, 0, 0}, {}, count};
}

Profile with_sites(uint64_t first, uint64_t second, InlinedSite numbers) {
  Profile p = sample();
  p.inlined.at(kPlace).sites = {{{SlotKind::kCallTarget, 4}, calls(1, first, second, 64)},
                                {{SlotKind::kRange, 6}, std::move(numbers)}};
  return p;
}

TEST(ProfileInlined, sites_merge_by_the_rules_of_their_kind) {
  const Profile a = with_sites(10, 5, range(3, -9, -7, 2));
  const Profile b = with_sites(1, 40, range(2, 20, 5, 15));
  const InlinedSites sum = merged(a, b).inlined.at(kPlace).sites;
  InlinedSite both = calls(2, 11, 45, 128);
  EXPECT_EQ(sum.at({SlotKind::kCallTarget, 4}), both);
  EXPECT_EQ(sum.at({SlotKind::kRange, 6}), range(5, 11, -7, 15));
  EXPECT_EQ(merged(b, a), merged(a, b));
  // A site that only one side has is kept.
  Profile none = sample();
  EXPECT_EQ(merged(none, a).inlined.at(kPlace).sites, a.inlined.at(kPlace).sites);
}

TEST(ProfileInlined, tables_of_sites_are_trimmed_into_other) {
  Profile p = with_sites(10, 5, range(3, -9, -7, 2));
  EXPECT_EQ(trim(p, 1), 1u);
  const InlinedSite& s = p.inlined.at(kPlace).sites.at({SlotKind::kCallTarget, 4});
  EXPECT_EQ(s.counts[0], 6u);
  EXPECT_EQ(s.estimates[0], 16u + 5u);
  EXPECT_EQ(s.table, (Table{{{0xa1, 3}, {10, 160}}}));
}

TEST(ProfileInlined, what_fewer_than_the_quorum_called_there_becomes_other) {
  profile::Quorum quorum;
  Profile sum = with_sites(10, 5, range(3, -9, -7, 2));
  Profile one_of_them = sum;
  one_of_them.inlined.at(kPlace).sites.at({SlotKind::kCallTarget, 4}).table.erase({0xa1, 4});
  for (const auto& [key, m] : sum.methods) quorum.see(0, m);
  quorum.see(0, sum.inlined);
  for (const auto& [key, m] : sum.methods) quorum.see(1, m);
  quorum.see(1, one_of_them.inlined);
  const profile::Quorum::Report report = quorum.finish(sum, 2);
  EXPECT_EQ(report.inlined, 0u);
  EXPECT_EQ(report.entries, 1u);
  const InlinedSite& s = sum.inlined.at(kPlace).sites.at({SlotKind::kCallTarget, 4});
  EXPECT_EQ(s.counts[0], 6u);
  EXPECT_EQ(s.table, (Table{{{0xa1, 3}, {10, 160}}}));
}

TEST(ProfileInlined, sites_that_break_a_rule_are_named) {
  const auto rule = [](SlotKind kind, SiteId site, InlinedSite s) {
    InlinedBody body{{1, 2, 3}, {{1, {1, 1, 1}}}};
    body.sites[{kind, site}] = std::move(s);
    const Status status = body.check(kPlace);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_EQ(rule(SlotKind::kCounter, 4, {{1}, {1}, {}, 1}), "");
  EXPECT_EQ(rule(SlotKind::kCounter, 4, {{0}, {0}, {}, 0}), "inlined body: a site without a count");
  EXPECT_EQ(rule(SlotKind::kCounter, 0, {{1}, {1}, {}, 1}), "inlined body: a site 0");
  EXPECT_EQ(rule(SlotKind::kEdge, 4, {{0}, {1}, {}, 1}), "");
  for (const SlotKind kind : {SlotKind::kBlock, SlotKind::kLoop}) {
    EXPECT_EQ(rule(kind, 4, {{1}, {1}, {}, 1}), "inlined body: a site of a kind that it has not");
  }
  const std::string words = "inlined body: words or a table that no site has";
  EXPECT_EQ(rule(SlotKind::kCounter, 4, {{1, 2}, {1}, {}, 1}), words);
  EXPECT_EQ(rule(SlotKind::kGauge, 4, {{1}, {1}, {}, 1}), words);
  EXPECT_EQ(rule(SlotKind::kCounter, 4, {{1}, {1}, {{{0, 1}, {1, 1}}}, 1}), words);
  EXPECT_EQ(rule(SlotKind::kCallTarget, 4, {{1}, {1}, {{{0, 1ull << 32}, {1, 1}}}, 1}), words);
}

TEST(ProfileInlined, sites_come_back_from_text_rows_and_files) {
  const Profile p = with_sites(10, 5, range(3, -9, -7, 2));
  const std::string text = to_text(p);
  EXPECT_NE(text.find("  call_target 4 other 1 ~16 samples 64 {\n"
                      "    0x00000000000000a1:3 10 ~160\n    0x00000000000000a1:4 5\n  }\n"
                      "  range 6 count 3 sum -9 min -7 max 2 samples 3\n}"),
            std::string::npos)
      << text;
  EXPECT_EQ(*parse_profile(text), p);
  EXPECT_EQ(profile::profile_from_tsv(profile::to_tsv(p, {}))->profile, p);
  EXPECT_EQ(profile_from_file(profile_to_file(p, {}))->profile, p);
  Generator generator(54);
  for (int round = 0; round < 300; ++round) {
    const Profile any = generator.profile();
    ASSERT_EQ(*parse_profile(to_text(any)), any);
    ASSERT_EQ(profile_from_file(profile_to_file(any, {}))->profile, any);
  }
}

TEST(ProfileInlined, rows_of_a_site_add_up) {
  const Profile a = with_sites(10, 5, range(3, -9, -7, 2));
  const Profile b = with_sites(1, 40, range(2, 20, 5, 15));
  const std::string both = profile::to_tsv(a, {}) + profile::to_tsv(b, {});
  EXPECT_EQ(profile::profile_from_tsv(both)->profile, merged(a, b));
}

TEST(ProfileInlined, top_keeps_what_is_inlined_into_what_it_keeps) {
  Profile p = sample();
  p.inlined[{{0xa1, 8}, {{1, {0xa1, 7}}}}] = {{1, 1}, {{1, {1, 1, 1}}}};
  EXPECT_EQ(profile::top(p, 2), p);
  const Profile first = profile::top(p, 1);
  EXPECT_EQ(first.inlined, sample().inlined);
  EXPECT_TRUE(profile::top(p, 0).inlined.empty());
}

TEST(ProfileInlined, overlap_by_place_is_apart_from_that_of_methods) {
  const Profile p = sample();
  OverlapReport same = compare(p, p);
  ASSERT_TRUE(same.inlined);
  EXPECT_DOUBLE_EQ(same.inlined->value, 1);
  Profile none = p;
  none.inlined.clear();
  EXPECT_FALSE(compare(none, none).inlined);
  const OverlapReport half = compare(p, none);
  // The executions: 18 are the root's, 1042 are of the method inlined into it, and 1027 of the last
  // one.
  EXPECT_DOUBLE_EQ(half.program.value, (18.0 + 1042) / (18 + 1042 + 1027));
  EXPECT_EQ(half.inlined->value, 0);
  EXPECT_EQ(half.inlined->only_a, 1);
  // A quarter of the executions moves from one block to another; estimates count, not counts.
  const Profile a = one(kPlace, {{1, 1, 1}, {{1, {9, 75, 9}}, {2, {9, 25, 9}}}});
  const Profile b = one(kPlace, {{1, 1, 1}, {{1, {1, 50, 1}}, {2, {1, 50, 1}}}});
  EXPECT_DOUBLE_EQ(compare(a, b).inlined->value, 0.75);
  EXPECT_DOUBLE_EQ(compare(b, a).inlined->value, 0.75);
  const Profile other = one(kPlace, {{1, 1, 2}, {{1, {1, 50, 1}}}});
  EXPECT_EQ(compare(a, other).inlined->value, 0);
  EXPECT_EQ(compare(a, other).inlined->mismatched_a, 1);
}

TEST(ProfileInlined, fewer_voters_than_the_quorum_tell_nothing) {
  profile::Quorum quorum;
  Profile common = sample(), sum = sample();
  common.inlined.erase(kPlace);
  for (const uint32_t voter : {0u, 1u}) {
    for (const auto& [key, m] : common.methods) quorum.see(voter, m);
    quorum.see(voter, common.inlined);
  }
  quorum.see(1, sum.inlined);  // kPlace: one voter
  EXPECT_EQ(quorum.finish(sum, 2).inlined, 1u);
  EXPECT_EQ(sum, common);
  EXPECT_EQ(quorum.finish(sum, 3).inlined, 1u);
  EXPECT_EQ(sum, Profile{});
  // No voter has seen the root.
  profile::Quorum bodies;
  for (const uint32_t voter : {0u, 1u}) bodies.see(voter, common.inlined);
  EXPECT_EQ(bodies.finish(common, 2).inlined, 1u);
  EXPECT_EQ(common, Profile{});
}

// ---- Text -------------------------------------------------------------------------------------

TEST(ProfileInlined, golden_text) { test::expect_golden("profile_inlined", to_text(sample())); }

TEST(ProfileInlined, example_of_the_header_is_read) {
  const Result<Profile> p = parse_profile(
      "uptier-profile 1\ninlined 0x00000000000000a1:7 0x0123456789abcdef {  # root\n"
      "  at 5 0x00000000000000a1:8 0x0000000000000011\n  block 1 64 ~1024 samples 64\n}");
  ASSERT_TRUE(p.ok()) << p.error().message;
  EXPECT_EQ(
      *p, one({{0xa1, 7}, {{5, {0xa1, 8}}}}, {{0x0123456789abcdef, 0x11}, {{1, {64, 1024, 64}}}}));
}

TEST(ProfileInlined, broken_text_is_named) {
  const auto rule = [](const std::string& text) {
    const Result<Profile> p = parse_profile("uptier-profile 1\n" + text);
    return p.ok() ? "" : p.error().message;
  };
  EXPECT_EQ(rule("inlined 1:2 3 {\n  block 1 5 samples 1\n}"),
            "profile 2:1: inlined body: no call leads to it");
  EXPECT_EQ(rule("inlined 1:2 3 {\n  at 1 1:3 4\n}"), "profile 2:1: inlined body: no blocks");
  EXPECT_EQ(rule("inlined 1:2 3 {\n  at 1 1:3 4\n  block 1 2\n}"), "profile 5:1: expected samples");
  EXPECT_EQ(rule("inlined 1:2 3 {\n  at 1 7 4\n"),
            "profile 3:8: expected a method, module key:function index");
  const std::string body = "  at 1 1:3 4\n  block 1 2 samples 1\n";
  EXPECT_EQ(rule("inlined 1:2 3 {\n" + body + "  block 1 2 samples 1\n}"),
            "profile 5:3: a site stands twice");
  EXPECT_EQ(rule("inlined 1:2 3 {\n" + body + "}\ninlined 1:2 3 {\n" + body + "}"),
            "profile 6:1: an inlined body stands twice");
}

// ---- Files ------------------------------------------------------------------------------------

TEST(ProfileInlined, many_bodies_take_several_chunks) {
  Profile p;
  for (uint32_t i = 0; i < 20000; ++i) {
    InlinedKey key{{i % 5, i}, {{1 + i % 3, {i % 7, i / 2}}}};
    p.inlined.emplace(key, InlinedBody{{i, 1}, {{1, {i, 16 * i, 1}}, {4, {1, 1, 1}}}});
  }
  const Bytes file = profile_to_file(p, {});
  const profile::UpfReader reader(file);
  EXPECT_GT(reader.segments().at(0).inlined.size(), 4u);
  EXPECT_EQ(profile_from_file(file)->profile, p);
}

// To an old reader, a file in a future format looks like this one.
TEST(ProfileInlined, readers_that_do_not_know_the_chunk_skip_it) {
  Bytes file = profile_to_file(sample(), {});
  const profile::UpfReader reader(file);
  const Bytes record(reader.segments().at(0).inlined.at(0).begin(),
                     reader.segments().at(0).inlined.at(0).end());
  const auto at = std::ranges::search(file, record).begin() - file.begin();
  const std::span<std::byte> chunk =
      std::span(file).subspan(static_cast<size_t>(at), record.size());
  profile::store<uint16_t>(chunk, 4, 0x555e);
  profile::seal_record(chunk);
  const Result<ProfileFile> back = profile_from_file(file);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->profile.methods, sample().methods);
  EXPECT_TRUE(back->profile.inlined.empty());
  EXPECT_TRUE(back->warnings.empty());
  EXPECT_EQ(back->unknown, 1u);
}

TEST(ProfileInlined, no_bytes_do_harm) {
  std::mt19937_64 random(3);
  Generator generator(53);
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    Profile p = generator.profile();
    uint64_t dropped = 0;
    const bool sites = round % 2 != 0;
    std::vector<Bytes> parts = sites ? profile::inlined_site_parts(p.inlined, dropped)
                                     : profile::inlined_parts(p.inlined, dropped);
    EXPECT_EQ(dropped, 0u);
    if (parts.empty()) continue;
    Bytes& part = parts[0];
    const auto read_part = sites ? profile::read_inlined_site_part : profile::read_inlined_part;
    for (auto& [key, body] : p.inlined) sites ? body.blocks.clear() : body.sites.clear();
    std::erase_if(p.inlined, [](const auto& item) {
      return item.second.blocks.empty() && item.second.sites.empty();
    });
    EXPECT_EQ(*read_part(part), p.inlined);
    part[random() % part.size()] ^= static_cast<std::byte>(1 + random() % 255);
    part.resize(part.size() - random() % 2 * (random() % part.size()));
    const Result<InlinedBodies> read = read_part(part);
    refused += read.ok() ? 0 : 1;
    if (!read.ok()) continue;
    for (const auto& [key, body] : *read) ASSERT_TRUE(body.check(key).ok());
  }
  EXPECT_GT(refused, 500u);
}

// Counts are not trusted: a count far above the existing bytes is refused, in each of the four
// positions.
TEST(ProfileInlined, claims_beyond_the_part_are_refused) {
  const auto part = [](std::array<uint64_t, 4> counts, uint64_t site = 5) {
    Bytes out;
    profile::ByteWriter writer(out);
    profile::append_varint(counts[0], out);  // modules
    writer.u64(0xa1);
    profile::append_varint(counts[1], out);                   // bodies
    profile::append_varints(std::array<uint64_t, 2>{}, out);  // root
    profile::append_varint(counts[2], out);                   // calls
    profile::append_varints(std::array<uint64_t, 3>{site, 0, 1}, out);
    for (const uint64_t hash : {1, 2}) writer.u64(hash);
    profile::append_varint(counts[3], out);  // blocks
    profile::append_varints(std::array<uint64_t, 4>{1, 2, 3, 4}, out);
    return out;
  };
  const Result<InlinedBodies> good = profile::read_inlined_part(part({1, 1, 1, 1}));
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, one({{0xa1, 0}, {{5, {0xa1, 1}}}}, {{1, 2}, {{1, {2, 3, 4}}}}).inlined);
  EXPECT_FALSE(profile::read_inlined_part(part({1, 1, 1, 1}, 0)).ok());  // breaks check()
  for (size_t i = 0; i < 4; ++i) {
    for (const uint64_t claim : {uint64_t{0}, uint64_t{2}, uint64_t{1} << 32, UINT64_MAX}) {
      std::array<uint64_t, 4> counts = {1, 1, 1, 1};
      counts[i] = claim;
      EXPECT_FALSE(profile::read_inlined_part(part(counts)).ok()) << i << " " << claim;
    }
  }
}

TEST(ProfileInlined, a_block_that_a_body_has_twice_is_refused) {
  const auto part = [](uint64_t second) {
    Bytes out;
    profile::ByteWriter writer(out);
    profile::append_varint(1, out);
    writer.u64(0xa1);
    profile::append_varints(std::array<uint64_t, 7>{1, 0, 0, 1, 5, 0, 1}, out);
    for (const uint64_t hash : {1, 2}) writer.u64(hash);
    profile::append_varints(std::array<uint64_t, 9>{2, 1, 2, 3, 4, second, 2, 3, 4}, out);
    return out;
  };
  EXPECT_TRUE(profile::read_inlined_part(part(2)).ok());
  EXPECT_FALSE(profile::read_inlined_part(part(1)).ok());
}

// ---- Rows -------------------------------------------------------------------------------------

TEST(ProfileInlined, rows_of_a_place_that_is_none_are_refused) {
  const std::string good = profile::to_tsv(sample(), {});
  ASSERT_EQ(profile::profile_from_tsv(good)->profile, sample());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return profile::profile_from_tsv(text.replace(at, from.size(), to));
  };
  const std::string place = "5 161 8 34;9 178 1 51;";
  EXPECT_TRUE(with(place, "5 161 8 34;9 178 1 52;").ok());
  for (const char* bad : {"", "5 161 8 34;9 178 1 51", "5 161 8;", "5 161 8 34 9;", "x 161 8 34;",
                          "5 161 8 34 ;", "5 161 4294967296 34;"}) {
    const Result<ProfileFile> read = with(place, bad);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_NE(read.error().message.find("the place of an inlined body is none"), std::string::npos);
  }
  EXPECT_FALSE(with("\tinlined\t1\tblock\t", "\tinlined\t1\tblocks\t").ok());
}

}  // namespace
}  // namespace uptier::profile_inlined_test
