// Pictures: their contents, and that graphviz can draw them.
#include <cmath>

#include "tests/support/tool_dir.h"
#include "tools/dot.h"

namespace uptier::profile_dot_test {
namespace {

class DotTool : public test::ToolDir {
 protected:
  // Draws a picture if graphviz is installed.
  void draw(const std::string& file) const {
    if (!installed("dot")) return;
    const test::RunResult r = in_dir("dot -Tsvg '" + file + "'");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.err, "");
    EXPECT_NE(r.out.find("<svg"), std::string::npos);
  }
  static size_t count(const std::string& text, const std::string& what) {
    size_t n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
  }
};

TEST_F(DotTool, blocks_and_calls_have_their_counts) {
  run("objects", "p.upf", "--interval=1 --policy=never");
  const std::string module = " --module " + test::wasm_path("objects");
  const test::RunResult blocks = tool("profile dot p.upf --method move_all -o b.dot" + module);
  ASSERT_EQ(blocks.code, 0) << blocks.err;
  const std::string b = test::slurp(path("b.dot"));
  const MethodProfile* m = nullptr;
  const Profile p = read("p.upf").profile;
  for (const auto& [key, method] : p.methods) {
    if (method.name == "move_all") m = &method;
  }
  ASSERT_NE(m, nullptr);
  size_t edges = 0;
  for (const Slot& slot : m->schema.slots) {
    const std::string n = std::to_string(m->estimates[slot.word]);
    if (slot.kind == SlotKind::kBlock) {
      const std::string node =
          "b" + std::to_string(slot.site) + " [label=\"block " + std::to_string(slot.site) + " @0x";
      ASSERT_NE(b.find(node), std::string::npos) << b;
      EXPECT_NE(b.find("\\n" + n + " ("), std::string::npos) << n << b;
    }
    edges += slot.kind == SlotKind::kEdge ? 1 : 0;
    if (slot.kind == SlotKind::kEdge) {
      EXPECT_NE(b.find("[label=\"" + n + "\""), std::string::npos) << n << b;
    }
  }
  EXPECT_EQ(count(b, " -> "), edges);
  draw("b.dot");

  ASSERT_EQ(tool("profile dot p.upf --top 5 -o c.dot" + module).code, 0);
  const std::string c = test::slurp(path("c.dot"));
  EXPECT_NE(c.find("calls of the 5 hottest methods"), std::string::npos);
  EXPECT_GT(count(c, " -> "), 0u);
  EXPECT_GT(count(c, "color=blue"), 0u);
  draw("c.dot");
  // Without the module there are no arrows between blocks, and the tool says so.
  const test::RunResult alone = tool("profile dot p.upf --method move_all");
  EXPECT_EQ(alone.code, 0);
  EXPECT_EQ(count(alone.out, " -> "), 0u);
  EXPECT_NE(alone.err.find("--module"), std::string::npos);
  const test::RunResult other =
      tool("profile dot p.upf --method move_all --module " + test::wasm_path("mix"));
  EXPECT_NE(other.err.find("has no such method with this code"), std::string::npos) << other.err;
  EXPECT_EQ(tool("profile dot p.upf --method nobody").code, 1);
  if (!installed("dot")) std::puts("SKIPPED: graphviz is not installed, pictures were not drawn");
}

TEST_F(DotTool, direct_calls_are_those_of_the_code) {
  write_text("m.wat", R"((module
    (func $leaf (param i32) (result i32) (local.get 0))
    (func $f (export "f") (param i32) (result i32) (local $i i32)
      (loop $top
        (drop (call $leaf (local.get $i)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $top (i32.lt_u (local.get $i) (local.get 0))))
      (call $leaf (local.get $i)))))");
  ASSERT_EQ(in_dir("wat2wasm --debug-names m.wat -o m.wasm").code, 0);
  ASSERT_EQ(tool("run --invoke f --interval=1 --policy=never --profile p.upf m.wasm 50").code, 0);
  const test::RunResult r = tool("profile dot p.upf --module m.wasm");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(count(r.out, " -> "), 1u) << r.out;
  EXPECT_NE(r.out.find("[label=\"51\""), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("label=\"leaf\\n"), std::string::npos) << r.out;
}

TEST_F(DotTool, overlap_draws_the_methods_that_differ_most) {
  run("phases", "a.upf", "--interval=1 --policy=never");
  run("phases", "b.upf", "--interval=16");
  const std::string words = "profile overlap a.upf b.upf --dot pictures --top 3 --module ";
  const test::RunResult r = tool(words + test::wasm_path("phases"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("overlap 0."), std::string::npos) << r.out;
  size_t files = 0;
  for (const auto& f : std::filesystem::directory_iterator(path("pictures"))) {
    ++files;
    const std::string text = test::slurp(f.path());
    EXPECT_NE(text.find("\\na: "), std::string::npos);
    EXPECT_NE(text.find("\\nb: "), std::string::npos);
    draw("pictures/" + f.path().filename().string());
  }
  EXPECT_NE(r.out.find(std::to_string(files) + " pictures in pictures"), std::string::npos)
      << r.out;
  EXPECT_TRUE(files >= 1 && files <= 3) << files;
  // A profile does not differ from itself.
  const test::RunResult same = tool("profile overlap a.upf a.upf --dot none");
  EXPECT_NE(same.out.find("0 pictures in none"), std::string::npos) << same.out;
}

// Whatever a name contains, it stays text inside quotes.
TEST(Dot, names_are_quoted) {
  MethodProfile m;
  m.name = "a\"]; evil [label=\"\\";
  m.schema = Schema::block_schema(1, 1);
  m.counts = {5};
  m.weigh(1);
  const std::string text = tools::dot_of_blocks(m, nullptr);
  EXPECT_NE(text.find("label=\"a\\\"]; evil [label=\\\"\\\\\\n0 calls"), std::string::npos) << text;
}

}  // namespace
}  // namespace uptier::profile_dot_test
