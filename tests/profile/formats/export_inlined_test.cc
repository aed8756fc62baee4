// Inlined bodies in the files of other tools: as inlined frames if the format has them, otherwise
// as executions of their methods; and nothing twice.
#include <set>
#include <sstream>

#include "profile/algebra/fold_inlined.h"
#include "profile/formats/csspgo.h"
#include "profile/formats/export.h"
#include "profile/formats/pprof.h"
#include "tests/support/tool_dir.h"

namespace uptier::export_inlined_test {
namespace {

// `left` and `pick` ran. `pick` is inlined at call 2 of `left`, and a method without a profile at
// call 7 of that body.
Profile some_profile() {
  Profile p;
  for (uint32_t i : {0u, 1u}) {
    MethodProfile m;
    m.key = {0xa1, i};
    m.name = i == 0 ? "pick" : "left;right";
    m.schema = Schema::block_schema(1, 0x11 + i);
    m.counts = {10 + i};
    m.weigh(1);
    p.methods.emplace(m.key, m);
  }
  const InlinedKey pick{{0xa1, 1}, {{2, {0xa1, 0}}}};
  p.inlined[pick] = {{0x12, 0x11}, {{1, {64, 1024, 64}}, {3, {2, 32, 64}}}};
  InlinedKey inner = pick;
  inner.path.push_back({7, {0xa1, 9}});
  p.inlined[inner] = {{0x12, 0x11, 0}, {{1, {1, 16, 64}}}};
  return p;
}

TEST(ExportInlined, folded_stacks_stand_on_what_they_are_inlined_into) {
  EXPECT_EQ(profile::to_folded(some_profile()),
            "pick;block_1 10\n"
            "left_right;block_1 11\n"
            "left_right;pick_[i];block_1 1024\n"
            "left_right;pick_[i];block_3 32\n"
            "left_right;pick_[i];function_9_[i];block_1 16\n");
}

// Block 3 does not belong to the method, and function 9 has no profile.
TEST(ExportInlined, coverage_has_them_in_the_lines_of_their_methods) {
  const std::string lcov = profile::to_lcov(some_profile());
  EXPECT_NE(lcov.find("FNDA:1034,pick\n"), std::string::npos) << lcov;
  EXPECT_NE(lcov.find("\nDA:1,1034\nDA:2,11\n"), std::string::npos) << lcov;
  const std::string llvm = profile::to_llvm_text(some_profile());
  EXPECT_NE(llvm.find("pick\n# Func Hash:\n17\n# Num Counters:\n1\n# Counter Values:\n1034\n"),
            std::string::npos)
      << llvm;
}

// `pick` has three blocks, and only its inlined body ran. The body counts blocks 1 and 2; block 3 was optimized
// away.
Profile with_unknown_block() {
  Profile p;
  for (uint32_t i : {0u, 1u}) {
    MethodProfile m;
    m.key = {0xa1, i};
    m.name = i == 0 ? "pick" : "left";
    m.schema = Schema::block_schema(i == 0 ? 3 : 1, 0x11 + i);
    m.counts.resize(m.schema.words(), i);
    m.weigh(1);
    p.methods.emplace(m.key, m);
  }
  p.inlined[{{0xa1, 1}, {{2, {0xa1, 0}}}}] = {{0x12, 0x11}, {{1, {64, 1024, 64}}, {2, {0, 0, 64}}}};
  return p;
}

TEST(ExportInlined, an_unknown_block_is_no_block_that_never_runs) {
  const Profile p = with_unknown_block();
  const profile::FoldedMethods folded = profile::fold_inlined(p);
  ASSERT_TRUE(folded.unknown.contains({0xa1, 0}));
  EXPECT_EQ(folded.unknown.at({0xa1, 0}), (std::set<SiteId>{3}));
  const std::string lcov = profile::to_lcov(p);
  EXPECT_NE(lcov.find("\nDA:1,1024\nDA:2,0\nDA:4,1\nLF:3\nLH:2\n"), std::string::npos) << lcov;
  EXPECT_NE(profile::to_llvm_text(p).find("\n3\n# Counter Values:\n1024\n0\n1\n"),
            std::string::npos)
      << profile::to_llvm_text(p);
  for (const auto contexts : {profile::Contexts::kNested, profile::Contexts::kApart}) {
    const std::string text = profile::to_csspgo(p, {}, contexts);
    EXPECT_NE(text.find(" 1: 1024\n"), std::string::npos) << text;
    EXPECT_NE(text.find(" 2: 0\n"), std::string::npos) << text;
    EXPECT_EQ(text.find(" 3: "), std::string::npos) << text;
  }
  // A file keeps the difference.
  const auto bytes = profile_to_file(p, {});
  const Result<ProfileFile> back = profile_from_file(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->profile.inlined, p.inlined);
}

// Nothing is unknown if the method's own code has run the block, or if the body never ran.
TEST(ExportInlined, a_block_is_known_if_somebody_counted_it) {
  Profile p = with_unknown_block();
  p.methods.at({0xa1, 0}).counts[2] = 5;
  EXPECT_TRUE(profile::fold_inlined(p).unknown.empty());
  p = with_unknown_block();
  p.inlined.begin()->second.blocks = {{1, {0, 0, 64}}};
  EXPECT_TRUE(profile::fold_inlined(p).unknown.empty());
}

TEST(ExportInlined, csv_has_two_rows_a_block) {
  std::istringstream lines(profile::to_csv(some_profile()));
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(",inlined,") != std::string::npos)
      rows.push_back(line.substr(0, line.size() - 1));
  }
  const std::string root = "0x00000000000000a1,1,left;right,inlined,";
  const std::string pick = "0x00000000000000a1,0,", other = "0x00000000000000a1,9,";
  EXPECT_EQ(
      rows,
      (std::vector<std::string>{
          root + "1,2 executions," + pick + "64,1024", root + "1,2 samples," + pick + "64,",
          root + "3,2 executions," + pick + "2,32", root + "3,2 samples," + pick + "64,",
          root + "1,2/7 executions," + other + "1,16", root + "1,2/7 samples," + other + "64,"}));
}

class ExportInlinedTool : public test::ToolDir {};

// An independent reader of the encoding: returns values by type, and the stack of each sample.
constexpr const char* kReadPprof = R"py(
import sys
def varint(b, i):
    n = s = 0
    while True:
        n |= (b[i] & 127) << s; s += 7; i += 1
        if b[i - 1] < 128: return n, i
def fields(b):
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        if key & 7 == 0: v, i = varint(b, i)
        else:
            n, i = varint(b, i); v = b[i:i + n]; i += n
        yield key >> 3, v
def packed(b):
    i, out = 0, []
    while i < len(b): v, i = varint(b, i); out.append(v)
    return out
types, samples, locations, functions, strings = [], [], {}, {}, []
for f, v in fields(open(sys.argv[1], 'rb').read()):
    if f == 1: types.append(dict(fields(v))[1])
    if f == 2: samples.append({k: packed(x) for k, x in fields(v)})
    if f == 4:
        lines = [dict(fields(x)) for k, x in fields(v) if k == 4]
        locations[dict((k, x) for k, x in fields(v) if k == 1)[1]] = lines
    if f == 5: d = dict(fields(v)); functions[d[1]] = d[2]
    if f == 6: strings.append(v.decode())
print(' '.join(strings[t] for t in types))
for s in samples:
    stack = ['%s:%d' % (strings[functions[l[1]]], l[2]) for n in s[1] for l in locations[n]]
    print(' '.join(map(str, s[2])), ' < '.join(stack))
)py";

TEST_F(ExportInlinedTool, pprof_has_them_as_inlined_frames_and_a_value_of_their_own) {
  write("p.upf", some_profile());
  ASSERT_EQ(tool("profile export p.upf --format=pprof -o p.pb").code, 0);
  std::ofstream(path("read.py")) << kReadPprof;
  const test::RunResult r = in_dir("python3 read.py p.pb");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out,
            "executions calls samples inlined\n"
            "10 0 0 0 pick:1\n"
            "11 0 0 0 left;right:1\n"
            "1024 0 0 1024 pick:1 < left;right:2\n"
            "32 0 0 32 pick:3 < left;right:2\n"
            "16 0 0 16 function 9:1 < pick:7 < left;right:2\n");
  if (!installed("go")) {
    std::puts("SKIPPED: go is not installed, inlined frames were not read by its tool");
    return;
  }
  for (const auto& [index, all] : {std::pair("inlined", "1072"), std::pair("executions", "1093")}) {
    const test::RunResult top =
        in_dir(std::string("go tool pprof -top -sample_index=") + index + " p.pb");
    EXPECT_EQ(top.code, 0) << top.err;
    EXPECT_NE(top.out.find("pick (inline)"), std::string::npos) << top.out;
    EXPECT_NE(top.out.find(std::string("of ") + all + " total"), std::string::npos) << top.out;
  }
}

TEST_F(ExportInlinedTool, those_that_no_method_can_count_are_told) {
  write("p.upf", some_profile());
  for (const char* format : {"lcov", "llvm-text"}) {
    EXPECT_EQ(
        tool(std::string("profile export p.upf --format=") + format).err,
        "uptier: 1 of 2 inlined bodies are left out: no method of the profile has their code\n");
  }
  for (const char* format : {"csv", "folded"}) {
    EXPECT_EQ(tool(std::string("profile export p.upf --format=") + format).err, "");
  }
}

TEST_F(ExportInlinedTool, other_tools_read_what_includes_them) {
  write("p.upf", some_profile());
  for (const auto& [format, out] :
       {std::pair("lcov", "p.info"), std::pair("llvm-text", "p.proftext"),
        std::pair("folded", "p.folded")}) {
    ASSERT_EQ(tool(std::string("profile export p.upf --format=") + format + " -o " + out).code, 0);
  }
  if (installed("lcov")) {
    const test::RunResult r = in_dir("lcov --summary p.info");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE((r.out + r.err).find("(2 of 2 lines)"), std::string::npos) << r.out << r.err;
  } else {
    std::puts("SKIPPED: lcov is not installed, coverage was not read by it");
  }
  if (installed("llvm-profdata")) {
    ASSERT_EQ(in_dir("llvm-profdata merge p.proftext -o p.profdata").code, 0);
    const test::RunResult r = in_dir("llvm-profdata show --all-functions --counts p.profdata");
    EXPECT_NE(r.out.find("Block counts: [1034]"), std::string::npos) << r.out << r.err;
  } else {
    std::puts("SKIPPED: llvm-profdata is not installed, llvm-text was not read by it");
  }
  if (installed("flamegraph.pl")) {
    const test::RunResult r = in_dir("flamegraph.pl --color java p.folded");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("<title>pick_[i] ("), std::string::npos) << r.out;
  } else {
    std::puts("SKIPPED: flamegraph.pl is not installed, stacks were not read by it");
  }
}

}  // namespace
}  // namespace uptier::export_inlined_test
