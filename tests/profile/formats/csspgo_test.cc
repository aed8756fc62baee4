// A profile as LLVM's probe-based sample profile: its text, and that LLVM's own reader agrees.
#include "profile/formats/csspgo.h"

#include <map>
#include <set>
#include <sstream>

#include "tests/support/tool_dir.h"

namespace uptier::csspgo_test {
namespace {

using profile::Contexts;
using profile::to_csspgo;

MethodProfile method(MethodKey key, const std::string& name, std::vector<uint64_t> blocks,
                     uint64_t calls) {
  MethodProfile m;
  m.key = key;
  m.name = name;
  m.schema = Schema::block_schema(static_cast<uint32_t>(blocks.size()), 100 + key.function_index);
  m.counts = std::move(blocks);
  m.weigh(1);
  m.calls = calls;
  return m;
}

// `main` has blocks 1 and 2 and calls `leaf` at site 3 in block 2; 30 of these calls ran inlined.
// It makes an indirect call at site 4.
struct Sample {
  Profile p;
  CallProfile calls;
  Sample() {
    const MethodKey main{0xa1, 0}, leaf{0xa1, 1}, twin{0xb2, 0};
    p.methods.emplace(main, method(main, "main", {10, 70}, 10));
    p.methods.emplace(leaf, method(leaf, "a leaf", {40, 0}, 40));
    p.methods.emplace(twin, method(twin, "a leaf", {7}, 7));
    MethodProfile& m = p.methods.at(main);
    m.schema.add(SlotKind::kCallTarget, 4);
    m.counts.resize(m.schema.words());
    m.estimates.resize(m.schema.words());
    m.tables[{SlotKind::kCallTarget, 4}] = {{{0xb2, 0}, {7, 7}}, {{0xa1, 1}, {63, 63}}};
    CodeShape& shape = calls.shapes[main];
    shape.cfg_hash = 100;
    shape.successors = {{2}, {}};
    shape.anchors = {{AnchorKind::kCall, name_hash("a leaf"), 2, 3},
                     {AnchorKind::kIndirectCall, 5, 2, 4}};
    InlinedBody body;
    body.code = {100, 101};
    body.blocks = {{1, {30, 30, 10}}, {2, {5, 5, 10}}};
    p.inlined.emplace(InlinedKey{main, {{3, leaf}}}, body);
  }
};

TEST(Csspgo, blocks_calls_and_inlined_bodies_are_probes) {
  const Sample s;
  EXPECT_EQ(to_csspgo(s.p, s.calls, Contexts::kNested),
            "main:225:10\n"
            " 1: 10\n"
            " 2: 70\n"
            " 3: 40 a_leaf.00000000000000a1.1:40\n"
            " 4: 70 a_leaf.00000000000000a1.1:63 a_leaf.00000000000000b2.0:7\n"
            " 3: a_leaf.00000000000000a1.1:35\n"
            "  1: 30\n"
            "  2: 5\n"
            "  !CFGChecksum: 101\n"
            " !CFGChecksum: 100\n"
            "a_leaf.00000000000000a1.1:40:40\n"
            " 1: 40\n"
            " 2: 0\n"
            " !CFGChecksum: 101\n"
            "a_leaf.00000000000000b2.0:7:7\n"
            " 1: 7\n"
            " !CFGChecksum: 100\n");
}

TEST(Csspgo, contexts_are_records_of_their_own) {
  const Sample s;
  const std::string text = to_csspgo(s.p, s.calls, Contexts::kApart);
  EXPECT_NE(text.find("[main]:190:10\n"), std::string::npos) << text;
  EXPECT_NE(text.find("[main:3 @ a_leaf.00000000000000a1.1]:35:30\n"
                      " 1: 30\n"
                      " 2: 5\n"
                      " !CFGChecksum: 101\n"),
            std::string::npos)
      << text;
}

// Returns the records by their first line, each with its other lines in any order.
std::map<std::string, std::multiset<std::string>> records_of(const std::string& text) {
  std::map<std::string, std::multiset<std::string>> records;
  std::istringstream lines(text);
  std::string head;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(' ')) {
      records[head].insert(line);
    } else {
      head = line;
      records[head];
    }
  }
  return records;
}

class CsspgoTool : public test::ToolDir {};

TEST_F(CsspgoTool, llvm_reads_the_same_numbers) {
  if (!installed("llvm-profdata-22")) {
    GTEST_SKIP() << "SKIPPED: there is no llvm-profdata-22 (Debian's llvm-22)";
  }
  for (const char* program : {"objects", "mix", "strings"}) {
    std::filesystem::remove(path("p.upf"));
    run(program, "p.upf");
    for (const char* form : {"", " --contexts"}) {
      const test::RunResult r =
          tool("profile export p.upf --format=csspgo -o p.prof" + std::string(form));
      ASSERT_EQ(r.code, 0) << r.err;
      const test::RunResult read =
          in_dir("llvm-profdata-22 merge --sample --text p.prof -o read.prof");
      ASSERT_EQ(read.code, 0) << read.err;
      const auto ours = records_of(test::slurp(path("p.prof")));
      ASSERT_GT(ours.size(), 5u);
      EXPECT_EQ(records_of(test::slurp(path("read.prof"))), ours) << program << form;
    }
  }
}

TEST_F(CsspgoTool, llvm_reads_names_that_begin_with_a_digit_or_a_mark) {
  for (const char* name : {"9 lives", "#leaf", "!leaf"}) {
    Sample s;
    s.p.methods.at({0xa1, 1}).name = name;
    const std::string text = to_csspgo(s.p, s.calls, Contexts::kNested);
    EXPECT_NE(text.find("\n 3: _"), std::string::npos) << text;
    if (!installed("llvm-profdata-22"))
      GTEST_SKIP() << "SKIPPED: llvm-profdata-22 is not installed";
    std::ofstream(path("p.txt")) << text;
    const test::RunResult r = in_dir("llvm-profdata-22 merge --sample --text p.txt -o -");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out.size(), text.size()) << r.out << text;
  }
}

}  // namespace
}  // namespace uptier::csspgo_test
