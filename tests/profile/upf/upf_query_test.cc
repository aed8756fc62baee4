// Queries of a compiler to a profile: each answer comes from the same code that asks, and from
// nothing else.
#include <gtest/gtest.h>

#include "profile/upf/idb.h"
#include "tests/support/trace_samples.h"
#include "uptier/profile_query.h"

namespace uptier::upf_query_test {
namespace {

const char* const kScope = "0x000000000000cccc";

// Sites: value 3, log 4, counter 5, range 6, gauge 7, and more; see trace_samples.h.
MethodProfile method_of(uint32_t index, const std::string& name) {
  MethodProfile m;
  m.key = {1, index};
  m.name = name;
  m.schema = test::kinds_schema();
  m.counts.assign(m.schema.words(), 0);
  const auto set = [&](SlotKind kind, SiteId site, uint32_t word, uint64_t value) {
    m.counts[m.schema.find(kind, site)->word + word] = value;
  };
  using namespace slot_word;
  set(SlotKind::kCounter, 5, kCount, 40 + index);
  set(SlotKind::kRange, 6, kCount, 4);
  set(SlotKind::kRange, 6, kSum, static_cast<uint64_t>(-20));
  set(SlotKind::kRange, 6, kSumHigh, UINT64_MAX);
  set(SlotKind::kRange, 6, kMin, static_cast<uint64_t>(-11 - int64_t{index}));
  set(SlotKind::kRange, 6, kMax, 3 + index);
  set(SlotKind::kValue, 3, kCount, 10);
  set(SlotKind::kValue, 3, kSum, 70);
  set(SlotKind::kValue, 3, kMin, 1);
  set(SlotKind::kValue, 3, kMax, 9);
  set(SlotKind::kValue, 3, kValueOther, 1);
  m.tables[{SlotKind::kValue, 3}] = {{{0, 1}, {2, 2}}, {{0, 8}, {7, 7}}};
  m.weigh(2);
  return m;
}

Profile profile_of(std::initializer_list<MethodProfile> methods) {
  Profile p;
  for (const MethodProfile& m : methods) p.methods.emplace(m.key, m);
  return p;
}

TEST(UpfQuery, each_kind_has_its_answer) {
  const Profile p = profile_of({method_of(0, "f")});
  auto a = query(p, "uptier", kScope, "counter#5");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->what, (decltype(a->what)(CounterAnswer{40, 80})));
  EXPECT_EQ(a->methods, 1u);
  a = query(p, "uptier", kScope, "range#6");
  ASSERT_TRUE(a);
  EXPECT_EQ(std::get<RangeAnswer>(a->what), (RangeAnswer{4, -11, 3, -5.0}));
  a = query(p, "uptier", kScope, "value#3");
  ASSERT_TRUE(a);
  const auto& values = std::get<ValuesAnswer>(a->what);
  EXPECT_EQ(values.values, (std::vector<ValuesAnswer::Value>{{8, 7}, {1, 2}}));
  EXPECT_EQ(values.other, 1u);
  EXPECT_EQ(values.range, (RangeAnswer{10, 1, 9, 7.0}));
}

TEST(UpfQuery, targets_are_methods) {
  MethodProfile m;
  m.schema.cfg_hash = 0xcccc;
  m.schema.add(SlotKind::kCallTarget, 2);
  m.counts = {5};
  m.tables[{SlotKind::kCallTarget, 2}] = {{{1, 3}, {4, 4}}, {{9, 8}, {6, 6}}};
  m.weigh(1);
  const auto a = query(profile_of({m}), "uptier", kScope, "call_target#2");
  ASSERT_TRUE(a);
  const auto& targets = std::get<TargetsAnswer>(a->what);
  EXPECT_EQ(targets.targets, (std::vector<TargetsAnswer::Target>{{{9, 8}, 6}, {{1, 3}, 4}}));
  EXPECT_EQ(targets.other, 5u);
}

TEST(UpfQuery, what_is_not_known_has_no_answer) {
  const Profile p = profile_of({method_of(0, "f")});
  EXPECT_FALSE(query(p, "flow", kScope, "counter#5"));
  EXPECT_FALSE(query(p, "uptier", "0x000000000000cccd", "counter#5"));
  EXPECT_FALSE(query(p, "uptier", "0xcccc", "counter#5"));
  EXPECT_FALSE(query(p, "uptier", kScope, "gauge#7"));  // it was never set
  for (const char* key : {"counter#6", "counter#0", "counter#", "counter", "", "#5", "counter#5x",
                          "counter#99999999999", "unknown#5"}) {
    EXPECT_FALSE(query(p, "uptier", kScope, key)) << key;
  }
}

TEST(UpfQuery, methods_of_one_shape_answer_together_unless_one_is_named) {
  const Profile p = profile_of({method_of(0, "f"), method_of(2, "g")});
  auto a = query(p, "uptier", kScope, "counter#5");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->methods, 2u);
  EXPECT_EQ(std::get<CounterAnswer>(a->what).count, 82u);
  a = query(p, "uptier", kScope, "range#6");
  ASSERT_TRUE(a);
  EXPECT_EQ(std::get<RangeAnswer>(a->what), (RangeAnswer{8, -13, 5, -5.0}));
  a = query(p, "uptier", std::string(kScope) + "@g", "counter#5");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->methods, 1u);
  EXPECT_EQ(std::get<CounterAnswer>(a->what).count, 42u);
  EXPECT_FALSE(query(p, "uptier", std::string(kScope) + "@h", "counter#5"));
}

// ---- Inlined bodies ---------------------------------------------------------------------------

// Methods 0 and 2 have the same shape. Both have a body inlined at call 2, and another one at call
// 7 of that body.
Profile with_bodies() {
  Profile p = profile_of({method_of(0, "f"), method_of(2, "g")});
  for (const uint32_t root : {0u, 2u}) {
    InlinedBody body{{0xcccc, 0xaa}, {{1, {64, 1024, 60 + root}}, {2, {0, 0, 60}}}};
    body.sites[{SlotKind::kCallTarget, 5}] = {
        {1}, {16}, {{{1, 3}, {40 + root, 640}}, {{1, 4}, {50, 800}}}, 90};
    body.sites[{SlotKind::kRange, 6}] = {{2, 8, 0, 3, 5 + root}, {2, 8, 0, 0, 0}, {}, 90};
    p.inlined[{{1, root}, {{2, {1, 7}}}}] = body;
    p.inlined[{{1, root}, {{2, {1, 7}}, {7, {1, 8}}}}] = {{0xcccc, 0xaa, 0xbb}, {{1, {3, 48, 60}}}};
  }
  return p;
}

const std::string kAt = "2:0x00000000000000aa/";

TEST(UpfQuery, an_inlined_body_answers_for_its_place) {
  const Profile p = with_bodies();
  const std::string f = std::string(kScope) + "@f";
  auto a = query(p, "uptier", f, kAt + "call_target#5");
  ASSERT_TRUE(a);
  EXPECT_EQ(std::get<TargetsAnswer>(a->what), (TargetsAnswer{{{{1, 4}, 50}, {{1, 3}, 40}}, 1}));
  EXPECT_EQ(a->methods, 1u);
  EXPECT_EQ(a->samples, 90u);
  a = query(p, "uptier", f, kAt + "range#6");
  ASSERT_TRUE(a);
  EXPECT_EQ(std::get<RangeAnswer>(a->what), (RangeAnswer{2, 3, 5, 4.0}));
  a = query(p, "uptier", f, kAt + "block#1");
  ASSERT_TRUE(a);
  EXPECT_EQ(*a, (ProfileAnswer{CounterAnswer{64, 1024}, 1, 60}));
  a = query(p, "uptier", f, kAt + "7:0x00000000000000bb/block#1");
  ASSERT_TRUE(a);
  EXPECT_EQ(*a, (ProfileAnswer{CounterAnswer{3, 48}, 1, 60}));
  // A method's own site is different from the site in its inlined bodies, and has none of their
  // samples.
  EXPECT_FALSE(query(p, "uptier", kScope, "block#1"));
  EXPECT_EQ(query(p, "uptier", f, "counter#5")->samples, 0u);
}

TEST(UpfQuery, bodies_of_one_key_answer_together) {
  auto a = query(with_bodies(), "uptier", kScope, kAt + "call_target#5");
  ASSERT_TRUE(a);
  EXPECT_EQ(std::get<TargetsAnswer>(a->what), (TargetsAnswer{{{{1, 4}, 100}, {{1, 3}, 82}}, 2}));
  EXPECT_EQ(a->methods, 2u);
  EXPECT_EQ(a->samples, 180u);
  a = query(with_bodies(), "uptier", kScope, kAt + "range#6");
  EXPECT_EQ(std::get<RangeAnswer>(a->what), (RangeAnswer{4, 3, 7, 4.0}));
  a = query(with_bodies(), "uptier", kScope, kAt + "block#1");
  EXPECT_EQ(*a, (ProfileAnswer{CounterAnswer{128, 2048}, 2, 122}));
}

TEST(UpfQuery, a_place_that_is_not_known_has_no_answer) {
  Profile p = with_bodies();
  for (const std::string key :
       {"3:0x00000000000000aa/block#1", "2:0x00000000000000ab/block#1", "2:0xaa/block#1",
        "7:0x00000000000000bb/block#1", "2:/block#1", "2/block#1", ":0x00000000000000aa/block#1",
        "0:0x00000000000000aa/block#1", "2:0x00000000000000aa//block#1", "/block#1",
        "2:0x00000000000000aa/block", "2:0x00000000000000aa/", "2:0x00000000000000aa/block#2",
        "2:0x00000000000000aa/block#3", "2:0x00000000000000aa/range#5",
        "2:0x00000000000000aa/edge#1", "2:0x00000000000000aa/loop#1",
        "block#1/2:0x00000000000000aa"}) {
    EXPECT_FALSE(query(p, "uptier", kScope, key)) << key;
  }
  EXPECT_FALSE(query(p, "uptier", "0x000000000000cccd", kAt + "block#1"));
  EXPECT_FALSE(query(p, "uptier", std::string(kScope) + "@h", kAt + "block#1"));
  EXPECT_FALSE(query(p, "flow", kScope, kAt + "block#1"));
  // A malformed site gives no answer.
  for (auto& [key, body] : p.inlined) {
    const auto at = body.sites.find({SlotKind::kRange, 6});
    if (at != body.sites.end()) at->second.counts.push_back(1);
  }
  EXPECT_FALSE(query(p, "uptier", kScope, kAt + "range#6"));
  p = with_bodies();
  // Unknown code could be any code.
  for (auto& [key, body] : p.inlined) body.code[1] = 0;
  EXPECT_FALSE(query(p, "uptier", kScope, "2:0x0000000000000000/block#1"));
}

TEST(UpfQuery, a_file_answers_for_its_bodies) {
  const std::vector<std::byte> file = profile_to_file(with_bodies(), {});
  const auto a = query(file, "uptier", kScope, kAt + "block#1");
  ASSERT_TRUE(a);
  EXPECT_EQ(*a, (ProfileAnswer{CounterAnswer{128, 2048}, 2, 122}));
}

TEST(UpfQuery, file_answers_for_its_methods_and_for_the_instruments_of_others) {
  std::vector<std::byte> file = profile_to_file(profile_of({method_of(0, "f")}), {});
  auto a = query(file, "uptier", kScope, "counter#5");
  ASSERT_TRUE(a);
  EXPECT_EQ(std::get<CounterAnswer>(a->what).count, 40u);
  // In the layout of IREE's own tools: strings, then the table, without seals.
  const uint64_t hits = 17, range[5] = {2, 10, 0, 4, 6};
  profile::StringTableBuilder strings;
  const profile::Bytes table =
      profile::instrument_table({{"iree.instrument.counter", "flow", "abcd", "dispatch_3", "{}",
                                  std::as_bytes(std::span(&hits, 1))},
                                 {"iree.instrument.range", "flow", "abcd", "dispatch_4", "{}",
                                  std::as_bytes(std::span(range))}},
                                strings);
  for (int i = 0; i < 2; ++i) {
    profile::append_chunk(file, profile::kIdbStringTable, 0, strings.content());
    profile::append_chunk(file, profile::kIdbInstrumentTable, 0, table);
  }
  // A chunk in IREE's layout is accepted when the next chunk shows that it has no seal.
  profile::append_chunk(file, profile::kIdbUserData, 0, profile::Bytes(16));
  a = query(file, "flow", "abcd", "dispatch_3");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->methods, 0u);
  EXPECT_EQ(std::get<CounterAnswer>(a->what).count, 34u);
  a = query(file, "flow", "abcd", "dispatch_4");
  ASSERT_TRUE(a);
  EXPECT_EQ(std::get<RangeAnswer>(a->what), (RangeAnswer{4, 4, 6, 5.0}));
  EXPECT_FALSE(query(file, "flow", "abce", "dispatch_3"));
  EXPECT_FALSE(query(file, "vm", "abcd", "dispatch_3"));
}

}  // namespace
}  // namespace uptier::upf_query_test
