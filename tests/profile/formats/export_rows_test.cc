// Formats that can be read back: rows (tsv) and llvm-text.
#include <nlohmann/json.hpp>
#include <sstream>

#include "profile/algebra/fold_inlined.h"
#include "profile/data/schema.h"
#include "profile/formats/export.h"
#include "profile/formats/llvm_text.h"
#include "profile/formats/tsv.h"
#include "test_paths.h"
#include "tests/support/random_times.h"
#include "tests/support/tool_dir.h"
#include "tests/support/trace_samples.h"

namespace uptier::export_rows_test {
namespace {

// Returns the profile with inlined bodies added to their methods.
Profile folded(Profile p) {
  for (auto& [key, m] : profile::fold_inlined(p).methods) p.methods[key] = m;
  return p;
}

using profile::profile_from_llvm_text;
using profile::profile_from_tsv;
using profile::to_tsv;
using test::Generator;

// Sets the extremes of sites without observations to 0, as in rows and in fresh counters.
Profile proper(Profile p) {
  for (auto& [key, m] : p.methods) {
    for (const Slot& slot : m.schema.slots) {
      const auto words = profile::words_of(slot.kind);
      for (size_t i = 0; i < words.size(); ++i) {
        const bool extreme =
            words[i].rule == profile::WordRule::kMin || words[i].rule == profile::WordRule::kMax;
        if (extreme && m.counts[slot.word] == 0) m.counts[slot.word + i] = 0;
      }
    }
  }
  return p;
}

ProfileInfo some_info(uint64_t n) {
  ProfileInfo info;
  info.engine = "engine\t" + std::to_string(n % 3);
  info.host = "host\\" + std::to_string(n % 2);
  info.schedule = "a\nb";
  info.time = 100 + n;
  info.runs = 1;
  info.weight = 1000;
  info.interval = 16 << n % 2;
  info.modules = {n, n + 1};
  info.uploads = {{100 + n, UINT64_MAX - n}};
  return info;
}

// Call profiles as runs leave them, without zeros.
CallProfile some_calls(Generator& generator) {
  const auto key = [&] {
    return MethodKey{generator.below(3) * 0x123456789abcdef,
                     static_cast<uint32_t>(generator.below(4))};
  };
  CallProfile calls;
  for (int i = 0; i < 4; ++i) {
    calls.graph[{key(), key()}] = 1 + generator.below(uint64_t{1} << 60);
    calls.first[key()] = {generator.below(1000), 1000};
    CodeShape& shape = calls.shapes[key()];
    shape = {.cfg_hash = generator.below(3), .successors = {}, .anchors = {}};
    const uint64_t blocks = 1 + generator.below(5);
    for (uint64_t b = 0; b < blocks; ++b) {
      shape.successors.add_list();
      for (uint64_t n = generator.below(3); n > 0; --n) {
        shape.successors.add(static_cast<SiteId>(1 + generator.below(blocks)));
      }
      if (generator.chance(3)) continue;
      shape.anchors.push_back({static_cast<AnchorKind>(1 + generator.below(5)),
                               ~generator.below(99), static_cast<SiteId>(b + 1),
                               static_cast<SiteId>(generator.below(9))});
    }
  }
  calls.time = test::random_times([&](uint64_t n) { return generator.below(n); }, key);
  return calls;
}

std::string rows_only(const std::string& tsv) { return tsv.substr(tsv.find('\n') + 1); }

TEST(ExportRows, reading_back_gives_the_same) {
  Generator generator(31);
  for (uint64_t round = 0; round < 300; ++round) {
    const Profile p = proper(generator.profile());
    const ProfileInfo info = round % 4 == 0 ? ProfileInfo{} : some_info(round);
    const CallProfile calls = round % 3 == 0 ? CallProfile{} : some_calls(generator);
    const Result<ProfileFile> back = profile_from_tsv(to_tsv(p, info, calls));
    ASSERT_TRUE(back.ok()) << back.error().message;
    ASSERT_EQ(back->profile, p);
    ASSERT_EQ(back->info, info);
    ASSERT_EQ(back->calls, calls);
  }
}

// Any number of profiles, in any order.
TEST(ExportRows, rows_of_several_are_the_rows_of_their_merge) {
  Generator generator(32);
  for (uint64_t round = 0; round < 200; ++round) {
    Profile sum;
    ProfileInfo infos;
    CallProfile calls;
    std::vector<std::string> lines;
    for (uint64_t n = 0; n < 4; ++n) {
      const Profile p = proper(generator.profile());
      merge(sum, p);
      infos += some_info(n);
      const CallProfile of_one = some_calls(generator);
      calls += of_one;
      std::istringstream rows(rows_only(to_tsv(p, some_info(n), of_one)));
      for (std::string line; std::getline(rows, line);) lines.push_back(line);
    }
    for (size_t i = lines.size(); i > 1; --i) std::swap(lines[i - 1], lines[generator.below(i)]);
    std::string text = to_tsv({}, {});
    for (const std::string& line : lines) text += line + "\n";
    const Result<ProfileFile> back = profile_from_tsv(text);
    ASSERT_TRUE(back.ok()) << back.error().message;
    ASSERT_EQ(back->profile, proper(sum));
    ASSERT_EQ(back->info, infos);
    ASSERT_EQ(back->calls, calls);
  }
}

// A call's number is in one of two columns; the other column is ignored.
TEST(ExportRows, a_call_that_counts_nothing_is_none) {
  std::string text = profile::to_tsv({}, {});
  text += "1\t2\t\t0\t0\tcall\t0\tcallee\t3\t4\tsum\t100\t0\t\n";
  text += "1\t2\t\t0\t0\tfirst_call\t0\truns\t0\t0\tsum\t0\t100\t\n";
  const Result<ProfileFile> file = profile::profile_from_tsv(text);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file->calls.graph.empty());
  EXPECT_TRUE(file->calls.first.empty());
}

TEST(ExportRows, the_voter_may_be_missing) {
  Generator generator(36);
  const Profile p = proper(generator.profile());
  const std::string whole = to_tsv(p, some_info(3));
  std::string less;
  std::istringstream rows(whole);
  for (std::string line; std::getline(rows, line);) less += line.substr(0, line.rfind('\t')) + "\n";
  EXPECT_NE(whole.find("\thost host\\\\1\n"), std::string::npos) << whole.substr(0, 400);
  const Result<ProfileFile> back = profile_from_tsv(less);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->profile, p);
  EXPECT_EQ(back->info, some_info(3));
  ASSERT_TRUE(profile_from_tsv(whole + less + whole).ok());
  EXPECT_EQ(profile_from_tsv(less + whole)->profile, profile_from_tsv(whole + whole)->profile);
  EXPECT_FALSE(profile_from_tsv(whole + rows_only(less)).ok());
  ProfileInfo nameless;
  nameless.uploads = {{5, 6}};
  nameless.runs = 1;
  EXPECT_NE(to_tsv({}, nameless).find("\trun 5-6\n"), std::string::npos);
}

TEST(ExportRows, damage_is_named_with_its_line) {
  Generator generator(33);
  Profile p;
  while (p.methods.size() < 3) p = generator.profile();
  const std::string good = to_tsv(p, some_info(1));
  const auto error = [](const std::string& text) {
    const Result<ProfileFile> r = profile_from_tsv(text);
    return r.ok() ? "" : r.error().message;
  };
  const std::string head = good.substr(0, good.find('\n') + 1);
  EXPECT_NE(error("hello\n").find("line 1: the first line"), std::string::npos);
  EXPECT_NE(error(head + "1\t2\n").find("line 2: 2 columns, not 14"), std::string::npos);
  EXPECT_NE(error(good.substr(0, good.size() - 2)).find("the line is cut off"), std::string::npos);
  const auto row = [&](const std::string& columns) { return error(head + columns + "\tv\n"); };
  EXPECT_NE(row("x\t1\tf\t1\t1\tblock\t1\tcount\t0\t0\tsum\t1\t1").find("column 1 "),
            std::string::npos);
  EXPECT_NE(row("1\t1\tf\\q\t1\t1\tblock\t1\tcount\t0\t0\tsum\t1\t1").find("a backslash"),
            std::string::npos);
  EXPECT_NE(row("1\t1\tf\t1\t1\tblob\t1\tcount\t0\t0\tsum\t1\t1").find("kind blob"),
            std::string::npos);
  EXPECT_NE(row("1\t1\tf\t1\t1\tblock\t1\tcunt\t0\t0\tsum\t1\t1").find("word cunt"),
            std::string::npos);
  EXPECT_NE(row("1\t1\tf\t1\t1\tblock\t1\tentry\t0\t0\tsum\t1\t1").find("no table"),
            std::string::npos);
  EXPECT_NE(row("1\t1\tf\t1\t1\tblock\t1\tslots\t0\t4000000000\tsame\t0\t0").find("slots of more"),
            std::string::npos);
  for (const char* text : {"1;", "2;|", "1 ;|", "1;|call 1 1", "1;|cull 1 1 1;", "1;|call 1 2 1;",
                           "1;|call 1 1 1 1;", "x;|", "1;|loop 0 1 1;call 0 0 1;", ""}) {
    EXPECT_NE(row("1\t1\t" + std::string(text) + "\t1\t0\tshape\t0\tcode\t0\t0\tgreatest\t0\t0")
                  .find("line 2: the shape"),
              std::string::npos)
        << text;
  }
  EXPECT_NE(row("1\t1\t\t0\t0\tcall\t0\tcallee\t1\t-1\tsum\t0\t1").find("number of a function"),
            std::string::npos);
  EXPECT_NE(row("1\t1\t\t0\t0\tfirst_call\t0\tcallee\t1\t1\tsum\t0\t1").find("word callee of"),
            std::string::npos);
  // Rows of a schema with one row missing.
  const size_t slots = good.find("\tslots\t");
  ASSERT_NE(slots, std::string::npos);
  const size_t begin = good.rfind('\n', slots) + 1;
  const std::string less = good.substr(0, begin) + good.substr(good.find('\n', slots) + 1);
  EXPECT_NE(error(less).find("its rows do not make the schema they name"), std::string::npos)
      << error(less);
}

TEST(ExportRows, no_text_makes_the_reader_fall) {
  Generator generator(34);
  const std::string good = to_tsv(generator.profile(), some_info(1), some_calls(generator));
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (uint64_t i = 1 + generator.below(3); i > 0; --i) {
      text[generator.below(text.size())] = static_cast<char>(generator.below(256));
    }
    if (generator.chance(4)) text.resize(generator.below(text.size()));
    const Result<ProfileFile> r = profile_from_tsv(text);
    if (!r.ok()) continue;
    for (const auto& [key, m] : r->profile.methods) ASSERT_TRUE(m.check().ok());
  }
}

TEST(ExportRows, llvm_text_is_read_back) {
  Generator generator(35);
  for (int round = 0; round < 200; ++round) {
    Profile p = generator.profile();
    uint32_t n = 0;
    for (auto& [key, m] : p.methods) m.name = "f" + std::to_string(n++);
    const std::string text = profile::to_llvm_text(p);
    const Result<Profile> back = profile_from_llvm_text(text, &p);
    ASSERT_TRUE(back.ok()) << back.error().message;
    ASSERT_EQ(profile::to_llvm_text(*back), text);
    for (const auto& [key, m] : back->methods) {
      ASSERT_EQ(p.methods.at(key).name, m.name);
      ASSERT_EQ(m.counts, m.estimates);
    }
  }
  const auto error = [](const std::string& text) {
    const Result<Profile> r = profile_from_llvm_text(text);
    return r.ok() ? "" : r.error().message;
  };
  EXPECT_NE(error("f\n1\n1\n1\n").find("no line \":ir\""), std::string::npos);
  EXPECT_EQ(error(":ir\nf\n1\n2\n1\nx\n"), "line 6: a number was expected");
  EXPECT_NE(error(":ir\nf\n1\n4000000000\n1\n").find("more counters"), std::string::npos);
}

// LLVM takes a function whose hash has bit 60 for one of a context-sensitive profile.
TEST(ExportRows, llvm_text_has_no_hash_with_bit_60_and_loses_none) {
  constexpr uint64_t kBit = uint64_t{1} << 60;
  Profile p;
  for (const uint64_t hash : {kBit | 17, uint64_t{18}}) {
    MethodProfile m;
    m.key = {0, static_cast<uint32_t>(p.methods.size())};
    m.name = "f" + std::to_string(hash & 31);
    m.schema = profile::Schema::block_schema(1, hash);
    m.counts = {5};
    m.calls = m.sampled_calls = 5;
    m.weigh(1);
    p.methods[m.key] = m;
  }
  const std::string text = profile::to_llvm_text(p);
  EXPECT_NE(text.find("# Func Hash:\n17\n"), text.npos) << text;
  EXPECT_EQ(text.find("\n" + std::to_string(kBit | 17) + "\n"), text.npos) << text;
  std::string merged;  // as llvm-profdata writes it, without comments
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) merged += line + "\n";
  }
  for (const Result<Profile>& back :
       {profile_from_llvm_text(text), profile_from_llvm_text(merged, &p)}) {
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, p) << to_text(*back);
  }
  EXPECT_EQ(profile_from_llvm_text(merged)->find({0, 0})->schema.cfg_hash, 17u);
}

using ImportTool = test::ToolDir;

TEST_F(ImportTool, rows_and_llvm_text_become_files_again) {
  run("objects", "p.upf");
  ASSERT_EQ(tool("profile export p.upf --format=tsv -o p.tsv").code, 0);
  ASSERT_EQ(tool("profile import p.tsv p.tsv -o back.upf").code, 0);  // a run counts once
  EXPECT_EQ(read("back.upf").profile, read("p.upf").profile);
  EXPECT_EQ(read("back.upf").info, read("p.upf").info);
  ASSERT_GT(read("p.upf").calls.graph.size(), 5u);  // the exact number depends on timing
  EXPECT_EQ(read("back.upf").calls, read("p.upf").calls);
  ASSERT_EQ(in_dir("cat p.tsv | " UPTIER_TOOL " profile import - -o pipe.upf").code, 0);
  EXPECT_EQ(read("pipe.upf").profile, read("p.upf").profile);
  EXPECT_NE(tool("profile overlap p.upf p.tsv").out.find("overlap 1.000000"), std::string::npos);

  ASSERT_EQ(tool("profile export p.upf --format=llvm-text -o p.txt").code, 0);
  const std::string module = test::wasm_path("objects");
  ASSERT_EQ(tool("profile import p.txt -o llvm.upf --module " + module).code, 0);
  // The format has no inlined bodies; they are added to their methods.
  const Profile back = read("llvm.upf").profile, p = folded(read("p.upf").profile);
  size_t same = 0;
  for (const auto& [key, m] : back.methods) {
    const MethodProfile* from = p.find(key);
    if (from == nullptr) continue;  // the host's adapters are in no module
    EXPECT_EQ(m.name, from->name);
    const Slot* entry = from->schema.find(SlotKind::kBlock, 1);
    EXPECT_EQ(m.estimate(SlotKind::kBlock, 1)->total, from->estimates[entry->word]) << m.name;
    ++same;
  }
  EXPECT_GT(same, 20u);
  // The engine accepts it.
  const test::RunResult r = tool("run --report=json --profile llvm.upf " + module);
  EXPECT_EQ(r.out, test::expected_output("objects"));

  // Hot methods in it are optimized at once.
  const std::string longer = module + " 9000";
  ASSERT_EQ(tool("run --profile long.upf " + longer).code, 0);
  ASSERT_EQ(tool("profile export long.upf --format=llvm-text -o long.txt").code, 0);
  ASSERT_EQ(tool("profile import long.txt -o hot.upf --module " + module).code, 0);
  const auto report =
      nlohmann::json::parse(tool("run --report=json --profile hot.upf " + longer).err);
  EXPECT_GT(report["saved"]["compiled"], 0) << report["saved"];

  // For example after inserting the rows twice into a database: the sum has more runs than names.
  ASSERT_EQ(in_dir("cat p.tsv > two.tsv; tail -n +2 p.tsv >> two.tsv").code, 0);
  const test::RunResult two = tool("profile import two.tsv -o two.upf");
  EXPECT_EQ(two.code, 0);
  EXPECT_NE(two.err.find("2 runs, but only 1 names of runs"), std::string::npos) << two.err;
  const test::RunResult bad = tool("profile import " + module + " -o bad.upf");
  EXPECT_EQ(bad.code, 3);
  EXPECT_NE(bad.err.find("line 1: the first line"), std::string::npos) << bad.err;
}

PathTime path_of(const nlohmann::json& j) {
  PathTime p;
  for (uint32_t i = 0; i < kTimePlaces; ++i) {
    const auto place = static_cast<TimePlace>(i);
    if (j.value("place", "method") == time_place_name(place)) p.frame.place = place;
  }
  p.frame.method = {j.value("module_key", uint64_t{0}), j.value("function_index", 0u)};
  p.samples = j["samples"];
  p.ns = j["ns"];
  for (const auto& callee : j["callees"]) p.callees.push_back(path_of(callee));
  return p;
}

TimeProfile time_of(const nlohmann::json& j) {
  TimeProfile t;
  t.asked_ns = j["asked_ns"];
  t.sampled_ns = j["sampled_ns"];
  t.squares = j["squares_us2"];
  for (const auto& p : j["paths"]) t.root.callees.push_back(path_of(p));
  return t;
}

CallProfile calls_of(const nlohmann::json& j) {
  CallProfile calls;
  const auto key = [](const nlohmann::json& at) {
    return MethodKey{at["module_key"], at["function_index"]};
  };
  for (const auto& c : j["calls"])
    calls.graph[{key(c["caller"]), key(c["callee"])}] = c["estimate"];
  for (const auto& f : j["first_calls"])
    calls.first[key(f)] = {f["positions"], f["runs_thousandths"]};
  const std::map<std::string, AnchorKind> kinds = {{"call", AnchorKind::kCall},
                                                   {"indirect_call", AnchorKind::kIndirectCall},
                                                   {"host_call", AnchorKind::kHostCall},
                                                   {"probe", AnchorKind::kProbe},
                                                   {"loop", AnchorKind::kLoop}};
  for (const auto& s : j["shapes"]) {
    CodeShape& shape = calls.shapes[key(s)];
    shape.cfg_hash = s["cfg_hash"];
    for (const auto& to : s["successors"]) {
      shape.successors.add_list();
      for (const SiteId site : to) shape.successors.add(site);
    }
    for (const auto& a : s["anchors"]) {
      shape.anchors.push_back({kinds.at(a["kind"]), a["target"], a["block"], a["site"]});
    }
  }
  calls.time = time_of(j["time"]);
  return calls;
}

TEST_F(ImportTool, json_has_all_that_is_known_of_calls) {
  run("objects", "p.upf");
  for (const char* words : {"profile show --json p.upf", "profile export p.upf --format=json"}) {
    const nlohmann::json j = nlohmann::json::parse(tool(words).out, nullptr, false);
    const ProfileFile p = read("p.upf");
    EXPECT_EQ(calls_of(j), p.calls);
    EXPECT_EQ(j["methods"].size(), p.profile.methods.size());
    EXPECT_EQ(j["provenance"]["runs"], 1);
    EXPECT_EQ(j["provenance"]["uploads"][0]["hash"], p.info.uploads.at(0).hash);
  }
  // For one method, only its own data.
  const nlohmann::json one = nlohmann::json::parse(
      tool("profile show --json --method disc_area p.upf").out, nullptr, false);
  EXPECT_EQ(one["methods"].size(), 1u);
  EXPECT_EQ(one["shapes"].size(), 1u);
  EXPECT_EQ(one["calls"].size(), 0u);
}

TEST_F(ImportTool, what_llvm_profdata_merged_is_read) {
  if (!installed("llvm-profdata")) {
    GTEST_SKIP() << "SKIPPED: llvm-profdata is not installed, its text was not imported";
  }
  run("objects", "a.upf");
  run("objects", "b.upf", "--interval=3");
  for (const char* f : {"a", "b"}) {
    const std::string name = f;
    tool("profile export " + name + ".upf --format=llvm-text -o " + name + ".txt");
  }
  ASSERT_EQ(in_dir("llvm-profdata merge -text -o ab.txt a.txt b.txt").code, 0);
  const std::string keys = " --module " + test::wasm_path("objects");
  ASSERT_EQ(tool("profile import ab.txt -o ab.upf" + keys).code, 0);
  ASSERT_EQ(tool("profile merge a.upf b.upf -o sum.upf").code, 0);
  const Profile sum = folded(read("sum.upf").profile);
  size_t compared = 0;
  for (const auto& [key, m] : read("ab.upf").profile.methods) {
    const MethodProfile* ours = sum.find(key);
    if (ours == nullptr) continue;
    for (const Slot& slot : m.schema.slots) {
      ASSERT_EQ(m.counts[slot.word],
                ours->estimates[ours->schema.find(slot.kind, slot.site)->word]);
    }
    ++compared;
  }
  EXPECT_GT(compared, 20u);
}

}  // namespace
}  // namespace uptier::export_rows_test
