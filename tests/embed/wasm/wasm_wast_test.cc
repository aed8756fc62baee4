// The line protocol of `uptier wast`.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/support/wasm_world.h"
#include "tools/wast.h"

namespace uptier::wasm::test::wasm_wast_test {
namespace {

// A file that exists as long as the test.
class TemporaryModule {
 public:
  explicit TemporaryModule(const Bytes& bytes) : path_(testing::TempDir() + "uptier-wast-XXXXXX") {
    int fd = mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(fd);
  }
  explicit TemporaryModule(std::string_view text) : TemporaryModule(assemble(text)) {}
  ~TemporaryModule() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string hex(std::string_view name) {
  std::string s;
  char digits[3];
  for (unsigned char c : name) {
    std::snprintf(digits, sizeof digits, "%02x", c);
    s += digits;
  }
  return s;
}

// Returns the answers to `commands`, one per line.
std::vector<std::string> ask(const std::string& commands) {
  std::istringstream in(commands);
  std::ostringstream out;
  Options options;
  options.tier = TierMode::kBaseline;
  EXPECT_EQ(tools::run_wast(options, {}, in, out), 0);
  std::istringstream answers(out.str());
  std::vector<std::string> lines;
  for (std::string line; std::getline(answers, line);) lines.push_back(line);
  return lines;
}

TEST(WastProtocol, invokes_and_prints) {
  TemporaryModule m(R"((module
    (import "spectest" "print_i32_f32" (func $p (param i32 f32)))
    (import "spectest" "global_f64" (global $g f64))
    (export "g" (global $g))
    (func (export "f") (param i32) (result i32 i64)
      (call $p (local.get 0) (f32.const 1)) (local.get 0) (i64.const -1))))");
  auto lines =
      ask("module 1 " + m.path() + "\ninvoke 1 66 i32:ffffffff\nget 1 67\nquit\nget 1 67\n");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "ok");
  EXPECT_EQ(lines[1], "print i32:ffffffff f32:3f800000");
  EXPECT_EQ(lines[2], "ok i32:ffffffff i64:ffffffffffffffff");
  EXPECT_EQ(lines[3], "ok f64:4084d4cccccccccd");  // 666.6
}

TEST(WastProtocol, refusals_are_told_apart) {
  TemporaryModule malformed(Bytes{0, 1, 2});
  TemporaryModule invalid("(module (func (result i32)))");
  TemporaryModule unlinkable("(module (import \"no\" \"\\n\" (func)))");
  TemporaryModule trapping("(module (start $s) (func $s unreachable))");
  TemporaryModule exhausting("(module (start $s) (func $s call $s))");
  auto lines = ask("module 1 " + malformed.path() + "\ncheck " + malformed.path() + "\nmodule 2 " +
                   invalid.path() + "\ncheck " + invalid.path() + "\nmodule 3 " +
                   unlinkable.path() + "\ncheck " + unlinkable.path() + "\nmodule 4 " +
                   trapping.path() + "\nmodule 5 " + exhausting.path() + "\n");
  std::vector<std::string> want = {
      "malformed ",  "malformed ", "invalid ",         "invalid ",
      "unlinkable ", "ok",         "trap unreachable", "exhaustion call stack exhausted"};
  ASSERT_EQ(lines.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(lines[i].starts_with(want[i])) << lines[i];
}

TEST(WastProtocol, registered_instances_can_be_imported) {
  TemporaryModule a("(module (func (export \"\") (result i32) i32.const 5))");
  TemporaryModule b("(module (import \"M\" \"\" (func $f (result i32))) (export \"g\" (func $f)))");
  auto lines = ask("module 1 " + a.path() + "\nregister 1 " + hex("M") + "\nmodule 2 " + b.path() +
                   "\ninvoke 2 67\ninvoke 1 -\n");
  EXPECT_EQ(lines, (std::vector<std::string>{"ok", "ok", "ok", "ok i32:5", "ok i32:5"}));
}

TEST(WastProtocol, repeat_answers_each_distinct_outcome_once) {
  TemporaryModule m(R"((module (global $n (mut i32) (i32.const 0))
    (func (export "f") (result i32)
      (global.set $n (i32.add (global.get $n) (i32.const 1)))
      (i32.div_u (i32.const 4) (i32.rem_u (global.get $n) (i32.const 3))))))");
  auto lines = ask("module 1 " + m.path() + "\nrepeat 9 1 66\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[1].starts_with("ok i32:4 | ok i32:2 | trap integer divide by zero"))
      << lines[1];
}

TEST(WastProtocol, nonsense_is_answered_with_an_error) {
  TemporaryModule m("(module (func (export \"f\") (param i32)))");
  auto lines = ask(
      "module 1 " + m.path() +
      "\ninvoke 7 66\ninvoke 1 6\ninvoke 1 66 i32:xyz\ninvoke 1 66 i32:100000000\n"
      "invoke 1 66 v128:0\ninvoke 1 66\nget 1 66\nfrobnicate\nrepeat\nmodule 2 /no/such/file\n\n");
  ASSERT_EQ(lines.size(), 12u);
  for (size_t i = 1; i < lines.size(); ++i) EXPECT_TRUE(lines[i].starts_with("error ")) << lines[i];
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_wast_test
