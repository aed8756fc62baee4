#include "tools/profile_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "profile/base/numbers.h"
#include "profile/data/schema.h"
#include "tests/support/trace_samples.h"

namespace uptier::tools::profile_json_test {
namespace {

using nlohmann::json;

// Returns the sites of a trace that has every kind, by kind.
std::map<std::string, json> kinds() {
  const Result<TraceProfile> trace = profile_from_trace(test::write_trace(test::kinds_events()));
  const json j = json::parse(profile_json(trace->profile));
  std::map<std::string, json> sites;
  for (const json& site : j["methods"][0]["sites"]) sites[site["kind"]] = site;
  return sites;
}

TEST(ProfileJson, method_has_every_field) {
  const Result<TraceProfile> trace = profile_from_trace(test::write_trace(test::kinds_events(), 3));
  const json j = json::parse(profile_json(*trace));
  EXPECT_EQ(j["truncated"], false);
  EXPECT_EQ(j["skipped"], 0);
  EXPECT_EQ(j["lost"], 3);
  json method = j["methods"][0];
  method.erase("sites");
  EXPECT_EQ(method, json::parse(R"({"module_key": 4660, "function_index": 0, "name": "main",
    "calls": 40, "sampled_calls": 16, "guessed_calls": 0, "iterations": 180, "bursts": 18,
    "weight_squares": 289, "interval": null, "time": null, "behind": false, "cfg_hash": 52428})"));
}

TEST(ProfileJson, counts_come_raw_and_estimated_with_their_interval) {
  const auto sites = kinds();
  EXPECT_EQ(sites.size(), 9u);
  for (const char* kind : {"block", "edge", "counter"}) {
    const json& site = sites.at(kind);
    EXPECT_LT(site["count"].get<double>(), site["estimate"].get<double>()) << kind;
    EXPECT_LT(site["low"].get<double>(), site["estimate"].get<double>()) << kind;
    EXPECT_GT(site["high"].get<double>(), site["estimate"].get<double>()) << kind;
  }
  EXPECT_EQ(sites.at("block")["count"], 16);
  EXPECT_EQ(sites.at("block")["estimate"], 40);
  EXPECT_EQ(sites.at("log")["events"]["count"], 9);
  EXPECT_EQ(sites.at("log")["lost"]["estimate"], 5);
}

TEST(ProfileJson, tables_name_their_keys) {
  const auto sites = kinds();
  const json& callees = sites.at("call_target");
  EXPECT_EQ(callees["other"]["count"], 4);
  EXPECT_EQ(callees["top"], 2);
  ASSERT_EQ(callees["table"].size(), 2u);
  EXPECT_EQ(callees["table"][1]["module_key"], 0x1234);
  EXPECT_EQ(callees["table"][1]["function_index"], 7);
  EXPECT_EQ(callees["table"][1]["count"], 9);
  EXPECT_EQ(callees["table"][1]["estimate"], 21);
  const json& values = sites.at("value");
  ASSERT_EQ(values["table"].size(), 3u);
  EXPECT_EQ(values["table"][2]["value"], -9);
  EXPECT_EQ(values["sum"], "-9");
  EXPECT_EQ(values["mean"], -1);
  EXPECT_EQ(values["min"], -9);
  EXPECT_EQ(values["max"], 4);
}

TEST(ProfileJson, ranges_gauges_and_loops_have_their_own_words) {
  const auto sites = kinds();
  EXPECT_EQ(sites.at("gauge"), (json{{"kind", "gauge"}, {"site", 7}, {"value", 70}}));
  EXPECT_EQ(sites.at("range")["sum"], "35");
  EXPECT_EQ(sites.at("range")["min"], 5);
  const json& loop = sites.at("loop");
  EXPECT_EQ(loop["entries"]["estimate"], 20);
  EXPECT_EQ(loop["squares"], "130000");
  EXPECT_EQ(loop["total_cycles"]["estimate"], 250 * 20);
  EXPECT_LT(loop["total_cycles"]["low"].get<double>(), 5000);
}

// ---- Back from JSON ---------------------------------------------------------------------------

using profile::WordRule;

// A method rebuilt from JSON. In JSON, estimates are 53-bit numbers; estimates of wide sums are
// text.
struct Rebuilt {
  MethodProfile method;  // its estimates: of wide words only
  std::vector<double> estimates;
  std::map<std::pair<SlotKind, SiteId>, std::map<TableKey, double>> table_estimates;
};

SlotKind kind_of(const std::string& name) {
  auto kind = SlotKind::kBlock;
  while (slot_kind_name(kind) != name && kind != SlotKind::kGauge) {
    kind = static_cast<SlotKind>(static_cast<int>(kind) + 1);
  }
  EXPECT_EQ(slot_kind_name(kind), name);
  return kind;
}

profile::Wide wide_of(const json& text) {
  return profile::parse_signed(text.get<std::string>(), profile::kMinWide, profile::kMaxWide)
      .value();
}

// Reads one word of a site. `j` is its JSON, which is the site itself if the site has a single
// word.
void take_word(const json& j, const json& site, const profile::Word& word, uint32_t at,
               Rebuilt& to) {
  MethodProfile& m = to.method;
  switch (word.rule) {
    case WordRule::kSum:
    case WordRule::kOther:
      m.counts[at] = j.at("count").get<uint64_t>();
      if (j.at("estimate").is_null()) {
        // Not observed; see MethodProfile::estimate.
        EXPECT_EQ(m.counts[at] + m.sampled_calls + m.bursts, 0u);
        EXPECT_GT(m.calls + m.iterations, 0u);
        return;
      }
      to.estimates[at] = j.at("estimate").get<double>();
      EXPECT_LE(j.at("low").get<double>(), to.estimates[at]);
      EXPECT_GE(j.at("high").get<double>(), to.estimates[at]);
      return;
    case WordRule::kWide:
      profile::store_wide(&m.counts[at], wide_of(j));
      profile::store_wide(&m.estimates[at], wide_of(site.at(std::string(word.name) + "_estimate")));
      return;
    case WordRule::kMin:
    case WordRule::kMax:
      if (!j.is_null()) m.counts[at] = static_cast<uint64_t>(j.get<int64_t>());
      return;
    default: m.counts[at] = j.get<uint64_t>(); return;
  }
}

void take_table(const json& site, const Slot& slot, Rebuilt& to) {
  for (const json& j : site.at("table")) {
    const TableKey key =
        slot.kind == SlotKind::kValue
            ? TableKey{0, static_cast<uint64_t>(j.at("value").get<int64_t>())}
            : TableKey{j.at("module_key").get<uint64_t>(), j.at("function_index").get<uint64_t>()};
    const std::pair at(slot.kind, slot.site);
    to.method.tables[at][key].count = j.at("count").get<uint64_t>();
    to.table_estimates[at][key] = j.at("estimate").get<double>();
  }
}

Rebuilt rebuild(const json& j) {
  Rebuilt to;
  MethodProfile& m = to.method;
  m.key = {j.at("module_key").get<uint64_t>(), j.at("function_index").get<uint32_t>()};
  m.name = j.at("name").get<std::string>();
  m.calls = j.at("calls").get<uint64_t>();
  m.sampled_calls = j.at("sampled_calls").get<uint64_t>();
  m.guessed_calls = j.at("guessed_calls").get<uint64_t>();
  m.iterations = j.at("iterations").get<uint64_t>();
  m.bursts = j.at("bursts").get<uint64_t>();
  m.weight_squares = j.at("weight_squares").get<uint64_t>();
  m.interval = j.at("interval").is_null() ? 0 : j.at("interval").get<uint64_t>();
  m.time = j.at("time").is_null() ? 0 : j.at("time").get<uint64_t>();
  m.behind = j.at("behind").get<bool>();
  m.schema.cfg_hash = j.at("cfg_hash").get<uint64_t>();
  for (const json& site : j.at("sites")) {
    const SlotKind kind = kind_of(site.at("kind").get<std::string>());
    m.schema.add(kind, site.at("site").get<SiteId>(),
                 has_table(kind) ? site.at("top").get<uint32_t>() : 0);
    const Slot slot = m.schema.slots.back();
    m.counts.resize(m.schema.words());
    m.estimates.resize(m.schema.words());
    to.estimates.resize(m.schema.words());
    const auto words = profile::words_of(kind);
    for (uint32_t i = 0; i < words.size(); ++i) {
      if (words[i].rule == WordRule::kWideHigh) continue;
      const bool alone = words.size() == 1 && words[0].rule == WordRule::kSum;
      const json& word = alone ? site : site.at(std::string(words[i].name));
      take_word(word, site, words[i], slot.word + i, to);
    }
    if (has_table(kind)) take_table(site, slot, to);
  }
  return to;
}

// Splits off the values that JSON has as 53-bit numbers. Clears the minimum and maximum of values
// that were never seen, which JSON leaves out.
Rebuilt split(MethodProfile m) {
  Rebuilt to;
  to.estimates.resize(m.estimates.size());
  for (const Slot& slot : m.schema.slots) {
    const auto words = profile::words_of(slot.kind);
    for (uint32_t i = 0; i < words.size(); ++i) {
      const uint32_t at = slot.word + i;
      const bool extreme = words[i].rule == WordRule::kMin || words[i].rule == WordRule::kMax;
      if (extreme && m.counts[slot.word] == 0) m.counts[at] = 0;
      if (words[i].rule != WordRule::kSum && words[i].rule != WordRule::kOther) continue;
      to.estimates[at] = static_cast<double>(std::exchange(m.estimates[at], 0));
    }
  }
  for (auto& [at, table] : m.tables) {
    for (auto& [key, entry] : table) {
      to.table_estimates[at][key] = static_cast<double>(std::exchange(entry.estimate, 0));
    }
  }
  to.method = std::move(m);
  return to;
}

TEST(ProfileJson, a_profile_is_rebuilt_from_it) {
  test::Generator generator(83);
  std::map<SlotKind, int> kinds;
  for (int round = 0; round < 100; ++round) {
    Profile profile = generator.profile();
    const json methods = json::parse(profile_json(profile)).at("methods");
    ASSERT_EQ(methods.size(), profile.methods.size());
    size_t at = 0;
    for (auto& [key, m] : profile.methods) {
      // Bytes that are not UTF-8 are replaced; the rest stays.
      m.name = json::parse(json(m.name).dump(-1, ' ', false, json::error_handler_t::replace));
      const Rebuilt back = rebuild(methods[at++]), sent = split(m);
      ASSERT_EQ(back.method, sent.method) << methods[at - 1].dump(1);
      ASSERT_EQ(back.estimates, sent.estimates) << methods[at - 1].dump(1);
      ASSERT_EQ(back.table_estimates, sent.table_estimates) << methods[at - 1].dump(1);
      for (const Slot& slot : m.schema.slots) ++kinds[slot.kind];
    }
  }
  EXPECT_EQ(kinds.size(), 9u);
}

TEST(ProfileJson, inlined_bodies_are_rebuilt_from_it) {
  test::Generator generator(89);
  size_t bodies = 0;
  const auto key_of = [](const json& j) {
    return MethodKey{j.at("module_key").get<uint64_t>(), j.at("function_index").get<uint32_t>()};
  };
  for (int round = 0; round < 100; ++round) {
    const Profile profile = generator.profile();
    InlinedBodies sent = profile.inlined, back;
    std::map<std::pair<InlinedKey, SiteId>, double> sent_estimates, estimates;
    for (auto& [key, body] : sent) {
      for (auto& [site, block] : body.blocks) {
        sent_estimates[{key, site}] = static_cast<double>(std::exchange(block.estimate, 0));
      }
      // The words of sites are tested with methods; this test compares which sites exist, and their
      // samples.
      for (auto& [at, site] : body.sites) {
        InlinedSite only;
        only.samples = site.samples;
        for (const auto& [entry, seen] : site.table) only.table[entry].count = seen.count;
        site = std::move(only);
      }
    }
    const json parsed = json::parse(profile_json(profile));
    for (const json& j : parsed.at("inlined")) {
      InlinedKey key{key_of(j.at("root")), {}};
      InlinedBody body{{j.at("root").at("cfg_hash").get<uint64_t>()}, {}};
      for (const json& call : j.at("path")) {
        key.path.push_back({call.at("site").get<SiteId>(), key_of(call)});
        body.code.push_back(call.at("cfg_hash").get<uint64_t>());
      }
      for (const json& b : j.at("blocks")) {
        const auto site = b.at("site").get<SiteId>();
        body.blocks[site] = {b.at("count").get<uint64_t>(), 0, b.at("samples").get<uint64_t>()};
        estimates[{key, site}] = b.at("estimate").get<double>();
      }
      for (const json& s : j.at("sites")) {
        auto kind = SlotKind::kBlock;
        while (slot_kind_name(kind) != s.at("kind").get<std::string>()) {
          kind = static_cast<SlotKind>(static_cast<int>(kind) + 1);
        }
        InlinedSite& site = body.sites[{kind, s.at("site").get<SiteId>()}];
        site.samples = s.at("samples").get<uint64_t>();
        for (const json& e : s.value("table", json::array())) {
          const bool value = kind == SlotKind::kValue;
          const TableKey at = value
                                  ? TableKey{0, static_cast<uint64_t>(e.at("value").get<int64_t>())}
                                  : TableKey{e.at("module_key").get<uint64_t>(),
                                             e.at("function_index").get<uint64_t>()};
          site.table[at].count = e.at("count").get<uint64_t>();
        }
      }
      back.emplace(std::move(key), std::move(body));
    }
    ASSERT_EQ(back, sent);
    ASSERT_EQ(estimates, sent_estimates);
    bodies += back.size();
  }
  EXPECT_GT(bodies, 0u);
}

TEST(ProfileJson, what_is_not_known_is_null) {
  MethodProfile method;
  method.schema.add(SlotKind::kLoop, 1);
  method.schema.add(SlotKind::kRange, 1);
  method.counts = {5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  method.weigh(1);
  Profile profile;
  profile.methods.emplace(method.key, method);
  const json sites = json::parse(profile_json(profile))["methods"][0]["sites"];
  EXPECT_EQ(sites[0]["total_cycles"], nullptr);
  EXPECT_EQ(sites[1]["min"], nullptr);
  EXPECT_EQ(sites[1]["max"], nullptr);
  EXPECT_EQ(sites[1]["mean"], nullptr);
}

TEST(ProfileJson, any_profile_is_valid_json_and_malformed_methods_are_left_out) {
  test::Generator generator(71);
  for (int round = 0; round < 100; ++round) {
    Profile profile = generator.profile();
    const json j = json::parse(profile_json(profile), nullptr, false);
    ASSERT_TRUE(j.is_object());
    ASSERT_EQ(j["methods"].size(), profile.methods.size());
    if (profile.methods.empty()) continue;
    profile.methods.begin()->second.counts.push_back(1);
    ASSERT_EQ(json::parse(profile_json(profile))["methods"].size(), profile.methods.size() - 1);
  }
}

}  // namespace
}  // namespace uptier::tools::profile_json_test
