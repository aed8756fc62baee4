// Profiles of edited code: which parts are matched, which are dropped, and that both are reported.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "profile/algebra/match.h"
#include "profile/algebra/match_inlined.h"
#include "profile/upf/file.h"
#include "test_paths.h"
#include "tests/support/golden.h"
#include "tests/support/program_runs.h"
#include "uptier/profile_file.h"

namespace uptier::upf_match_test {
namespace {

using profile::MatchReport;
using profile::SiteMap;

// A chain of blocks with calls of these targets (0: no call).
CodeShape line_of(const std::vector<uint64_t>& calls) {
  CodeShape shape;
  shape.cfg_hash = calls.size() * 1000 + 1;
  for (size_t b = 0; b < calls.size(); ++b) {
    shape.successors.add_list();
    if (b + 1 < calls.size()) shape.successors.add(static_cast<SiteId>(b + 2));
    const auto block = static_cast<SiteId>(b + 1);
    if (calls[b] != 0) {
      shape.anchors.push_back({AnchorKind::kCall, calls[b], block, 100 + block});
    }
  }
  return shape;
}

MethodProfile counted(const CodeShape& shape) {
  MethodProfile m;
  m.key = {1, 2};
  m.name = "f";
  m.schema = Schema::block_schema(static_cast<uint32_t>(shape.successors.size()), shape.cfg_hash);
  for (size_t i = 0; i < shape.successors.size(); ++i) m.counts.push_back(10 + i);
  m.weigh(3);
  m.calls = 10;
  return m;
}

Schema schema_of(const CodeShape& shape) {
  return Schema::block_schema(static_cast<uint32_t>(shape.successors.size()), shape.cfg_hash);
}

TEST(UpfMatch, what_did_not_change_is_found_block_by_block) {
  const CodeShape shape = line_of({0, 7, 0, 8, 9, 0});
  MatchReport report;
  const MethodProfile old = counted(shape);
  EXPECT_EQ(profile::match_profile(old, shape, schema_of(shape), shape, report), old);
  EXPECT_EQ(report.text(),
            "3 of 3 anchors matched (similarity 1.00), 6 of 6 blocks recovered, 0 inferred, 0 "
            "slots dropped");
}

TEST(UpfMatch, what_lies_around_an_edit_keeps_its_counts) {
  const CodeShape there = line_of({0, 7, 0, 8, 9, 0});
  const CodeShape here = line_of({0, 7, 0, 5, 0, 8, 9, 0});  // two more blocks and one more call
  MatchReport report;
  const MethodProfile m =
      profile::match_profile(counted(there), there, schema_of(here), here, report);
  ASSERT_TRUE(report.accepted) << report.text();
  EXPECT_EQ(report.matched, 3u);
  EXPECT_EQ(report.recovered, 6u);
  EXPECT_EQ(report.inferred, 2u);
  EXPECT_EQ(m.counts, (std::vector<uint64_t>{10, 11, 12, 12, 12, 13, 14, 15}));
  EXPECT_EQ(m.schema.cfg_hash, here.cfg_hash);
  EXPECT_TRUE(m.check().ok());
}

TEST(UpfMatch, what_was_removed_is_dropped_and_counted) {
  const CodeShape there = line_of({0, 7, 0, 5, 0, 8, 9, 0});
  const CodeShape here = line_of({0, 7, 0, 8, 9, 0});
  MatchReport report;
  const MethodProfile m =
      profile::match_profile(counted(there), there, schema_of(here), here, report);
  ASSERT_TRUE(report.accepted) << report.text();
  EXPECT_EQ(report.dropped, 2u);
  EXPECT_EQ(m.counts, (std::vector<uint64_t>{10, 11, 12, 15, 16, 17}));
}

TEST(UpfMatch, too_little_alike_is_dropped_with_the_reason) {
  MatchReport report;
  const CodeShape there = line_of({0, 7, 0, 8, 9, 0});
  for (const auto& [calls, why] :
       {std::pair(std::vector<uint64_t>{0, 1, 2, 3, 0}, "too little is alike"),
        std::pair(std::vector<uint64_t>{0, 9, 8, 7, 0}, "too little is alike"),
        std::pair(std::vector<uint64_t>(60, 7), "too little is alike")}) {
    const CodeShape here = line_of(calls);
    const MethodProfile m =
        profile::match_profile(counted(there), there, schema_of(here), here, report);
    EXPECT_FALSE(report.accepted);
    EXPECT_EQ(report.why, why);
    EXPECT_EQ(report.dropped, 6u);
    EXPECT_EQ(m.counts, std::vector<uint64_t>(calls.size()));
  }
  const CodeShape leaf = line_of({0, 0, 0}), longer = line_of({0, 0, 0, 0});
  (void)profile::match_profile(counted(leaf), leaf, schema_of(longer), longer, report);
  EXPECT_EQ(report.why, "it has no calls, probes or loops to be matched by");
  (void)profile::match_profile(counted(leaf), {}, schema_of(longer), longer, report);
  EXPECT_EQ(report.why, "the profile has no anchors of it");
  CodeShape other = there;
  other.cfg_hash ^= 1;
  (void)profile::match_profile(counted(there), other, schema_of(there), there, report);
  EXPECT_EQ(report.why, "the profile's anchors are of yet other code");
  // The same calls in a body that is otherwise almost completely different.
  std::vector<uint64_t> spread(40);
  spread[20] = 7;
  const CodeShape one = line_of({7}), many = line_of(spread);
  (void)profile::match_profile(counted(one), one, schema_of(many), many, report);
  EXPECT_EQ(report.why, "too few blocks are alike");
}

// For any two bodies: matched blocks keep their order, no block is matched twice, and no count is
// invented: each comes from an old block or follows from the flow.
TEST(UpfMatch, laws_hold_for_any_two_bodies) {
  std::mt19937 random(5);
  uint64_t accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint64_t> calls(1 + random() % 30);
    for (uint64_t& call : calls) call = random() % 3 == 0 ? 1 + random() % 9 : 0;
    std::vector<uint64_t> edited = calls;
    for (uint32_t edits = random() % 4; edits > 0; --edits) {
      const auto at = static_cast<ptrdiff_t>(random() % edited.size());
      if (random() % 2 == 0) {
        edited.insert(edited.begin() + at, random() % 10);
      } else if (edited.size() > 1) {
        edited.erase(edited.begin() + at);
      }
    }
    const CodeShape there = line_of(calls), here = line_of(edited);
    MatchReport report;
    const SiteMap map = profile::match_shapes(there, here, report);
    if (!report.accepted) continue;
    ++accepted;
    ASSERT_EQ(map.blocks.size(), calls.size());
    SiteId last = 0;
    for (const SiteId to : map.blocks) {
      if (to == 0) continue;
      ASSERT_GT(to, last);
      ASSERT_LE(to, edited.size());
      last = to;
    }
    for (const auto& [from, to] : map.sites) { ASSERT_EQ(calls[from - 101], edited[to - 101]); }
    const MethodProfile m =
        profile::match_profile(counted(there), there, schema_of(here), here, report);
    ASSERT_TRUE(m.check().ok());
    for (const uint64_t count : m.counts) ASSERT_LE(count, 10 + calls.size());
    ASSERT_EQ(report.recovered + report.inferred, edited.size());
  }
  EXPECT_GT(accepted, 500u);
}

const InlinedBody kSeen{{0x11, 0x22, 0x33}, {{4, {5, 50, 7}}}};

TEST(UpfMatch, inlined_bodies_stay_where_nothing_on_the_way_changed) {
  const MethodKey root{1, 1}, mid{1, 2}, leaf{1, 3};
  const InlinedKey place{root, {{6, mid}, {8, leaf}}};
  const profile::SameMethods same = {
      {root, {{9, 4}, 0x11, true}}, {mid, {{9, 5}, 0x22, true}}, {leaf, {{9, 6}, 0x33, true}}};
  const profile::InlinedMatch all = profile::match_inlined({{place, kSeen}}, same);
  EXPECT_EQ(all.kept, (InlinedBodies{{{{9, 4}, {{6, {9, 5}}, {8, {9, 6}}}}, kSeen}}));
  EXPECT_EQ(all.dropped, 0u);
  // Changes or removes the code of each of the three.
  for (const MethodKey& key : {root, mid, leaf}) {
    profile::SameMethods changed = same, gone = same;
    ++changed[key].cfg_hash;
    gone.erase(key);
    for (const auto& methods : {changed, gone}) {
      const profile::InlinedMatch match = profile::match_inlined({{place, kSeen}}, methods);
      EXPECT_TRUE(match.kept.empty());
      EXPECT_EQ(match.dropped, 1u);
    }
  }
}

TEST(UpfMatch, unknown_code_of_an_inlined_body_is_that_of_the_methods_profile) {
  const InlinedKey place{{1, 1}, {{6, {1, 2}}, {8, {1, 3}}}};
  InlinedBody body = kSeen;
  body.code[2] = 0;
  profile::SameMethods same;
  for (uint32_t i : {1u, 2u, 3u}) same[{1, i}] = {{1, i}, 0x11 * i, true};
  EXPECT_EQ(profile::match_inlined({{place, body}}, same).kept, (InlinedBodies{{place, body}}));
  same[{1, 3}].profiled = false;
  EXPECT_EQ(profile::match_inlined({{place, body}}, same).dropped, 1u);
}

class UpfEdit : public testing::Test {
 protected:
  UpfEdit() {
    char name[] = "/tmp/uptier-edit-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~UpfEdit() override { std::filesystem::remove_all(dir_); }
  std::string path(const std::string& name) const { return dir_ + "/" + name; }

  // Inserts text into functions of the program, at the beginning of their bodies.
  void edit(const std::string& program, const std::map<std::string, std::string>& changes) {
    ASSERT_EQ(
        test::run_command("wasm2wat " + test::wasm_path(program) + " -o " + path("t.wat")).code, 0);
    std::istringstream in(test::slurp(path("t.wat")));
    std::ofstream out(path("edited.wat"));
    const std::string* add = nullptr;
    size_t changed = 0;
    for (std::string line; std::getline(in, line);) {
      const bool local = line.find("(local ") != std::string::npos;
      if (add != nullptr && !local) {
        out << *add << "\n";
        add = nullptr;
        ++changed;
      }
      out << line << "\n";
      for (const auto& [function, text] : changes) {
        if (line.find("(func $" + function + " ") != std::string::npos) add = &text;
      }
    }
    out.close();
    ASSERT_EQ(changed, changes.size());
    const test::RunResult r = test::run_command("wat2wasm --debug-names " + path("edited.wat") +
                                                " -o " + path("edited.wasm"));
    ASSERT_EQ(r.code, 0) << r.err;
  }
  test::RunResult run(const std::string& module, const std::string& more) const {
    return test::run_tool("run --profile " + path("p.upf") + " " + more + " " + module);
  }
  std::string dir_;
};

const char* const kBranch = "local.get 0\nif\nlocal.get 1\ndrop\nend";
const char* const kLeafBranch = "local.get 0\nif\nend";

TEST_F(UpfEdit, others_keep_their_profiles_and_the_changed_are_matched_or_dropped) {
  edit("objects", {{"move_all", kBranch}, {"disc_area", kLeafBranch}});
  if (HasFatalFailure()) return;
  ASSERT_EQ(run(test::wasm_path("objects"), "--tier=instrumented").code, 0);
  const test::RunResult told =
      test::run_command(UPTIER_TOOL " profile match " + path("p.upf") + " " + path("edited.wasm") +
                        " -o " + path("edited.upf"));
  EXPECT_EQ(told.code, 0) << told.err;
  test::expect_golden("upf_match", told.out);
  // The runtime reports the same, and the program runs as usual.
  const test::RunResult r = run(path("edited.wasm"), "--report");
  EXPECT_EQ(r.out, test::expected_output("objects"));
  for (const char* part :
       {"1 methods have other code than when they were profiled: their profiles were matched by "
        "their calls",
        "1 methods have other code than when they were profiled: their profiles were dropped",
        "1 matched by their", "no calls, probes or loops to be matched by", "similarity 1.00"}) {
    EXPECT_NE(r.err.find(part), std::string::npos) << part << "\n" << r.err;
  }
  // The tool has written a profile of the edited module, so nothing is matched any more.
  const test::RunResult moved = test::run_tool("run --report=json --profile " + path("edited.upf") +
                                               " " + path("edited.wasm"));
  const auto json = nlohmann::json::parse(moved.err, nullptr, false);
  EXPECT_EQ(moved.out, test::expected_output("objects"));
  EXPECT_EQ(json["saved"]["recovered"], 0) << moved.err;
  EXPECT_EQ(json["saved"]["matched"], 0);
  EXPECT_EQ(json["saved"]["stale"], 0);
  EXPECT_GE(json["saved"]["methods"], 10);
}

// Adds four inlined bodies. For two of them, a method on the path was edited; for a third, the root
// now has a different callee in a body of the same shape.
TEST_F(UpfEdit, inlined_bodies_are_kept_or_dropped_and_counted) {
  edit("objects", {{"move_all", kBranch}, {"disc_area", kLeafBranch}});
  if (HasFatalFailure()) return;
  ASSERT_EQ(run(test::wasm_path("objects"), "--tier=instrumented").code, 0);
  const auto load = [&](const std::string& name) {
    const std::string bytes = test::slurp(path(name));
    Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(file.ok()) << file.error().message;
    return file.ok() ? std::move(*file) : ProfileFile{};
  };
  ProfileFile file = load("p.upf");
  const auto find = [](const ProfileFile& in, const std::string& name) -> const MethodProfile& {
    for (const auto& [key, m] : in.profile.methods) {
      if (m.name == name) return m;
    }
    ADD_FAILURE() << name;
    return in.profile.methods.begin()->second;
  };
  std::vector<const MethodProfile*> whole;  // not edited, with calls
  for (const auto& [key, m] : file.profile.methods) {
    if (m.name == "move_all" || m.name == "disc_area" || m.name.empty()) continue;
    if (m.name.starts_with("host ")) continue;  // made by the engine, not part of the module
    if (!file.calls.shapes.at(key).anchors.empty()) whole.push_back(&m);
  }
  ASSERT_GE(whole.size(), 3u);
  const auto put = [&](const MethodProfile& root, const MethodProfile& callee) {
    InlinedBody body{{root.schema.cfg_hash, callee.schema.cfg_hash}, {{1, {64, 1024, 64}}}};
    file.profile.inlined[{root.key, {{2, callee.key}}}] = body;
  };
  put(*whole[0], *whole[1]);
  put(find(file, "move_all"), *whole[0]);
  put(*whole[0], find(file, "disc_area"));
  put(*whole[2], *whole[1]);
  file.calls.shapes[whole[2]->key].anchors[0].target ^= 1;
  ASSERT_TRUE(profile::replace_file(path("in.upf"), profile_to_file(file.profile, file.info, {},
                                                                    nullptr, &file.calls))
                  .ok());
  const test::RunResult told =
      test::run_command(UPTIER_TOOL " profile match " + path("in.upf") + " " + path("edited.wasm") +
                        " -o " + path("edited.upf"));
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_NE(("\n" + told.out).find("\n1 inlined bodies kept, 3 dropped\n"), std::string::npos)
      << told.out;
  const ProfileFile edited = load("edited.upf");
  const MethodProfile& root = find(edited, whole[0]->name);
  const MethodProfile& callee = find(edited, whole[1]->name);
  EXPECT_NE(root.key.module_key, whole[0]->key.module_key);
  const InlinedBody same{{whole[0]->schema.cfg_hash, whole[1]->schema.cfg_hash},
                         {{1, {64, 1024, 64}}}};
  EXPECT_EQ(edited.profile.inlined, (InlinedBodies{{{root.key, {{2, callee.key}}}, same}}));
}

TEST_F(UpfEdit, what_was_matched_is_hot_at_once_and_saved_again) {
  edit("objects", {{"move_all", kBranch}});
  if (HasFatalFailure()) return;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(run(test::wasm_path("objects"), "-O measure_rates=off").code, 0);
  }
  const auto saved = [&] {  // the report, followed by messages
    const std::string err = run(path("edited.wasm"), "--report=json -O measure_rates=off").err;
    return nlohmann::json::parse(err.substr(0, err.find("\nuptier: ")), nullptr, false);
  };
  const auto first = saved();
  EXPECT_EQ(first["saved"]["matched"], 1);
  EXPECT_GE(first["saved"]["recovered"], 10);
  EXPECT_GE(first["saved"]["compiled"], 1);
  const auto second = saved();
  EXPECT_EQ(second["saved"]["matched"], 0);
  EXPECT_EQ(second["saved"]["stale"], 0);
  EXPECT_GE(second["saved"]["compiled"], 1);
}

}  // namespace
}  // namespace uptier::upf_match_test
