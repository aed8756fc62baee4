// Inputs of `uptier profile merge` other than profile files: traces, tables of other tools; and the
// inputs that it leaves out and names.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "profile/base/checksum.h"
#include "profile/data/text.h"
#include "profile/upf/idb.h"
#include "tests/support/tool_dir.h"
#include "tests/support/trace_samples.h"
#include "uptier/profile_query.h"

namespace uptier::profile_merge_tool_test {
namespace {

using profile::Bytes;

class MergeInputs : public test::ToolDir {
 protected:
  void write_bytes(const std::string& name, const Bytes& bytes) const {
    write_text(name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  ProfileFile merged(const std::string& words) const {
    const test::RunResult r = tool("profile merge -o sum " + words);
    EXPECT_EQ(r.code, 0) << r.err;
    return read("sum");
  }
};

Bytes trace_of(uint64_t interval) {
  std::vector<TraceEvent> events = test::sample_events();
  std::erase_if(events, [](const TraceEvent& e) { return std::holds_alternative<Provenance>(e); });
  events.insert(events.begin(), Provenance{"engine 7", interval, "prime", "trials=off"});
  return test::write_trace(events);
}

TEST_F(MergeInputs, trace_is_one_run_however_often_it_comes) {
  write_bytes("a.trace", trace_of(16));
  write_bytes("b.trace", trace_of(8));
  const Result<TraceProfile> alone = profile_from_trace(trace_of(16));
  ASSERT_TRUE(alone.ok());
  const ProfileFile a = merged("a.trace");
  EXPECT_EQ(a.profile, alone->profile);
  EXPECT_EQ(a.info.runs, 1u);
  EXPECT_EQ(a.info.weight, ProfileInfo::kRunWeight);
  EXPECT_EQ(a.info.engine, "engine 7");
  EXPECT_EQ(a.info.interval, 16u);
  EXPECT_EQ(a.info.schedule, "prime, trials=off");
  std::vector<uint64_t> modules;
  for (const auto& [key, m] : alone->profile.methods) {
    if (modules.empty() || modules.back() != key.module_key) modules.push_back(key.module_key);
  }
  EXPECT_EQ(a.info.modules, modules);
  ASSERT_EQ(a.info.uploads.size(), 1u);
  EXPECT_EQ(merged("a.trace a.trace").profile, a.profile);
  EXPECT_EQ(merged("--threads 4 " + std::string("a.trace a.trace a.trace a.trace a.trace ") +
                   "a.trace a.trace a.trace a.trace a.trace a.trace a.trace")
                .info,
            a.info);
  ASSERT_EQ(tool("profile merge -o one.upf a.trace && cat a.trace one.upf > both.upf").code, 0);
  EXPECT_EQ(merged("one.upf a.trace").info, a.info);
  EXPECT_EQ(merged("both.upf a.trace one.upf").profile, a.profile);
  Profile two = alone->profile;
  merge(two, alone->profile);
  const ProfileFile both = merged("a.trace b.trace");
  EXPECT_EQ(both.info.runs, 2u);
  EXPECT_EQ(both.info.interval, 0u);  // mixed
  for (const auto& [key, m] : two.methods) EXPECT_EQ(both.profile.methods.at(key).counts, m.counts);
  Profile weighed = alone->profile;
  ASSERT_TRUE(scale(weighed, 3, 1).ok());
  EXPECT_EQ(merged("3@a.trace").profile, weighed);
  // A trace has no age, and counts as a voter of its own.
  EXPECT_EQ(merged("--half-life 1 a.trace").profile, a.profile);
  EXPECT_EQ(merged("--quorum 2 a.trace").profile, Profile{});
  EXPECT_EQ(merged("--quorum 2 a.trace b.trace").profile.methods.size(),
            alone->profile.methods.size());
}

TEST_F(MergeInputs, show_of_a_trace_says_where_it_comes_from) {
  write_bytes("a.trace", trace_of(16));
  const test::RunResult r = tool("profile show a.trace");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("runs      1 (weight 1.000), uploads known 1,"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("latest    - on -, engine 7\n"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("schedule  interval 16, prime, trials=off\n"), std::string::npos) << r.out;
}

// In the layout of IREE's tools.
Bytes database(uint64_t hits) {
  profile::StringTableBuilder strings;
  const Bytes table =
      profile::instrument_table({{"iree.instrument.counter", "flow", "abcd", "dispatch_3", "{}",
                                  std::as_bytes(std::span(&hits, 1))}},
                                strings);
  Bytes out;
  profile::append_chunk(out, profile::kIdbFileHeader, 0, {});
  profile::append_chunk(out, profile::kIdbStringTable, 0, strings.content());
  profile::append_chunk(out, profile::kIdbInstrumentTable, 0, table);
  return out;
}

TEST_F(MergeInputs, json_has_the_result_and_all_messages) {
  write_bytes("a.trace", trace_of(16));
  Bytes torn = trace_of(8);
  torn.resize(torn.size() - 3);
  write_bytes("torn.trace", torn);
  test::RunResult r = tool("profile merge --json -o sum a.trace torn.trace a.trace");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto said = nlohmann::json::parse(r.out);
  EXPECT_EQ(said["output"], "sum");
  EXPECT_EQ(said["runs"], 2);
  EXPECT_EQ(said["known_uploads"], 1);
  EXPECT_EQ(said["messages"][0], "1 uploads were already in other files");
  ASSERT_EQ(said["files"].size(), 3u);
  EXPECT_EQ(said["files"][0]["path"], "a.trace");
  EXPECT_TRUE(said["files"][0]["messages"].empty());
  ASSERT_EQ(said["files"][1]["messages"].size(), 1u);
  // People read the same.
  EXPECT_NE(r.err.find("torn.trace: " + said["files"][1]["messages"][0].get<std::string>()),
            std::string::npos)
      << r.err;
  r = tool("profile merge --json -o - a.trace");
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("--json and the profile cannot both go to stdout"), std::string::npos);
}

TEST_F(MergeInputs, tables_of_other_tools_come_through_merges_and_saves) {
  write_bytes("db", database(17));
  run("mix", "p.upf");
  ASSERT_EQ(in_dir("cat db >> p.upf").code, 0);
  run("mix", "p.upf");
  const ProfileFile saved = read("p.upf");
  EXPECT_EQ(saved.info.runs, 2u);
  EXPECT_EQ(saved.foreign, read("db").foreign);
  EXPECT_EQ(merged("p.upf db").foreign, saved.foreign);  // counts once
  EXPECT_EQ(merged("3@p.upf").foreign, saved.foreign);   // and has no weight
  EXPECT_EQ(merged("db").foreign, saved.foreign);
  write_bytes("db", database(4));
  EXPECT_EQ(merged("p.upf db").foreign.instruments.begin()->payload[0], std::byte{21});
  const test::RunResult r = tool("profile merge --quorum 1 -o sum p.upf");
  EXPECT_NE(r.err.find("data of other tools was left out"), std::string::npos) << r.err;
  EXPECT_TRUE(read("sum").foreign.empty());
  EXPECT_NE(tool("profile show p.upf").out.find("others    1 instruments, 0 user data"),
            std::string::npos);
  EXPECT_EQ(tool("profile check p.upf db").code, 0);
}

TEST_F(MergeInputs, methods_and_modules_are_filtered) {
  Profile p;
  for (uint32_t i = 0; i < 4; ++i) {
    MethodProfile m;
    m.key = {0xa0 + i % 2, i};
    m.name = i < 2 ? "sort_" + std::to_string(i) : "x" + std::to_string(i);
    m.schema = Schema::block_schema(1, 1);
    m.counts = {10};
    m.weigh(1);
    p.methods.emplace(m.key, m);
  }
  p.inlined[{{0xa0, 0}, {{3, {0xa1, 1}}}}] = {{7, 8}, {{1, {64, 64, 64}}}};
  p.inlined[{{0xa1, 1}, {{3, {0xa0, 0}}}}] = {{7, 8}, {{1, {64, 64, 64}}}};
  ProfileInfo info;
  info.uploads = {{1, 2}};
  write("p", p, info);
  const auto keys = [](const Profile& of) {
    std::string text;
    for (const auto& [key, m] : of.methods) text += m.name + " ";
    return text;
  };
  EXPECT_EQ(keys(merged("--methods 'sort_*' p").profile), "sort_0 sort_1 ");
  EXPECT_EQ(keys(merged("--methods '*[01]' --module 0xa1 p").profile), "sort_1 ");
  EXPECT_EQ(keys(merged("--module 0xa0 p").profile), "sort_0 x2 ");
  EXPECT_EQ(keys(merged("--module 160 --module 0xa1 p").profile), keys(p));
  EXPECT_EQ(merged("--module 0xa0 p").profile.inlined.size(), 1u);
  EXPECT_TRUE(merged("--module 0xa0 p").info.uploads.empty());
  EXPECT_EQ(merged("p").info.uploads.size(), 1u);
  EXPECT_EQ(tool("profile merge -o sum --module a0 p").code, 2);
}

TEST_F(MergeInputs, name_may_be_the_hash_of_the_bytes) {
  run("mix", "a.upf");
  std::filesystem::create_directory(path("bus"));
  ASSERT_EQ(tool("profile merge -o bus/%H.upf a.upf").code, 0);
  ASSERT_EQ(tool("profile merge -o bus/%H.upf a.upf a.upf").code, 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path("bus"))) {
    names.push_back(entry.path().filename().string());
  }
  ASSERT_EQ(names.size(), 1u);
  const std::string bytes = test::slurp(path("bus/" + names[0]));
  EXPECT_EQ(names[0], profile::hex(XXH3_64bits(bytes.data(), bytes.size())).substr(2) + ".upf");
}

TEST_F(MergeInputs, show_tells_the_cutoffs_that_are_asked_for) {
  Profile p;
  MethodProfile m;
  m.schema = Schema::block_schema(4, 1);
  m.counts = {40, 30, 20, 10};
  m.weigh(1);
  p.methods.emplace(m.key, m);
  write("p", p);
  const test::RunResult r = tool("profile show --cutoffs 65,35 p");
  EXPECT_EQ(r.code, 0) << r.err;
  const size_t at = r.out.find(
      "   35.00 % of executions in 1 blocks of at least 40\n"
      "   65.00 % of executions in 2 blocks of at least 30\n");
  EXPECT_NE(at, std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("90.00 %"), std::string::npos) << r.out;
  EXPECT_NE(tool("profile show p").out.find("90.00 %"), std::string::npos);
  EXPECT_EQ(tool("profile show --cutoffs 101 p").code, 2);
}

// Each thread stops at its first invalid file; the test does not depend on which thread is first.
TEST_F(MergeInputs, of_several_files_that_are_no_profiles_the_first_is_named) {
  Bytes head = profile_to_file(Profile(), ProfileInfo());
  head.resize(16);
  std::string words;
  for (int i = 0; i < 32; ++i) {
    std::string name = "bad" + std::to_string(i);
    write_bytes(name, head);
    words += " " + name;
  }
  for (int round = 0; round < 40; ++round) {
    const test::RunResult r = tool("profile merge -o sum --threads 4" + words);
    EXPECT_NE(r.code, 0);
    EXPECT_NE(r.err.find("bad0: no profile file"), std::string::npos) << r.err;
  }
}

}  // namespace
}  // namespace uptier::profile_merge_tool_test
