// wasm-hints: the sections describe the executed instructions at the right offsets, and change no
// answer.
#include <map>
#include <set>
#include <sstream>

#include "tests/support/tool_dir.h"
#include "tools/compile_world.h"
#include "tools/wasm_hints.h"

namespace uptier::export_hints_test {
namespace {

using Bytes = std::vector<uint8_t>;
using Values = std::vector<uint32_t>;
using Hints = std::map<std::pair<uint32_t, uint32_t>, Values>;  // by function, offset in the body

// Calls f with 1000; a comment after each branch says how often it is taken.
constexpr const char* kModule = R"((module
  (func $same (param i32) (result i32) (local.get 0))
  (func $f (export "f") (param $n i32) (result i32)
    (local $i i32) (local $s i32)
    (block $done
      (loop $top                                              ;; 1001 times
        (br_if $done (i32.ge_u (local.get $i) (local.get $n)))  ;; once of 1001
        (if (i32.eqz (i32.rem_u (local.get $i) (i32.const 100)))  ;; 10 of 1000
          (then (local.set $s (call $same (local.get $s)))))
        (if (i32.and (local.get $i) (i32.const 1))            ;; 500
          (then (local.set $s (i32.add (local.get $s) (i32.const 1)))))
        (if (i32.eqz (i32.eq (local.get $i) (i32.const 3)))   ;; 999
          (then (local.set $s (call $same (i32.add (local.get $s) (i32.const 2))))))
        (if (i32.lt_u (local.get $i) (i32.const 990))         ;; 990, with else
          (then (local.set $s (i32.add (local.get $s) (i32.const 3))))
          (else (local.set $s (call $same (local.get $s)))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $top (i32.eqz (i32.const 0)))))                ;; 1000 of 1000
    (local.get $s)))
)";

uint32_t leb(const std::string& bytes, size_t& at) {
  uint32_t value = 0;
  for (unsigned shift = 0; at < bytes.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= static_cast<uint32_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

// Reads a hint section; also checks whether it comes before the code.
Hints hints_of(const std::string& module, const std::string& name) {
  Hints hints;
  bool code = false;
  for (size_t at = 8; at < module.size();) {
    const auto id = static_cast<uint8_t>(module[at++]);
    const uint32_t size = leb(module, at);
    const size_t end = at + size;
    code = code || id == 10;
    size_t in = at;
    at = end;
    if (id != 0) continue;
    const uint32_t length = leb(module, in);
    if (module.substr(in, length) != name) continue;
    in += length;
    EXPECT_FALSE(code) << name << " stands behind the code";
    EXPECT_TRUE(hints.empty()) << name << " is there twice";
    for (uint32_t functions = leb(module, in); functions > 0; --functions) {
      const uint32_t function = leb(module, in);
      for (uint32_t count = leb(module, in); count > 0; --count) {
        const uint32_t offset = leb(module, in);
        const uint32_t bytes = leb(module, in);
        const size_t behind = in + bytes;
        EXPECT_TRUE(hints.empty() || hints.rbegin()->first < std::pair(function, offset));
        Values& values = hints[{function, offset}];
        while (in < behind) values.push_back(leb(module, in));
        EXPECT_EQ(in, behind);
      }
    }
    EXPECT_EQ(in, end);
  }
  return hints;
}

class HintsTool : public test::ToolDir {
 protected:
  // Returns the instructions of a module by function and offset in the body, as wabt disassembles
  // them.
  std::map<std::pair<uint32_t, uint32_t>, std::string> instructions(const std::string& file) const {
    const test::RunResult r = in_dir("wasm-objdump -d " + file);
    EXPECT_EQ(r.code, 0) << r.err;
    std::map<std::pair<uint32_t, uint32_t>, std::string> all;
    std::istringstream lines(r.out);
    uint32_t function = 0, begin = 0;
    for (std::string line; std::getline(lines, line);) {
      unsigned at = 0, number = 0;
      if (std::sscanf(line.c_str(), "%x func[%u]", &at, &number) == 2) {
        function = number;
        begin = at;
        continue;
      }
      const size_t bar = line.find('|');
      if (bar == std::string::npos || std::sscanf(line.c_str(), " %x:", &at) != 1) continue;
      const size_t word = line.find_first_not_of(' ', bar + 1);
      if (word == std::string::npos) continue;
      all[{function, at - begin}] = line.substr(word, line.find_first_of(" \n", word) - word);
    }
    return all;
  }
};

TEST_F(HintsTool, branches_and_frequencies_are_those_that_were_measured) {
  write_text("m.wat", kModule);
  ASSERT_EQ(in_dir("wat2wasm m.wat -o m.wasm").code, 0);
  const std::string run = "run --invoke f --interval=1 --policy=never --profile p.upf ";
  const test::RunResult plain = tool(run + "m.wasm 1000");
  ASSERT_EQ(plain.code, 0) << plain.err;
  const test::RunResult r =
      tool("profile export p.upf --format=wasm-hints --module m.wasm -o h.wasm");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("branches: 3 likely, 2 unlikely, 1 without a hint; 4 frequencies"),
            std::string::npos)
      << r.err;

  const std::string hinted = test::slurp(path("h.wasm"));
  const auto at = instructions("m.wasm");
  std::vector<std::string> said;
  for (const auto& [place, hint] : hints_of(hinted, "metadata.code.branch_hint")) {
    ASSERT_TRUE(at.contains(place));
    said.push_back(at.at(place) + " " + std::to_string(hint.at(0)));
    EXPECT_EQ(hint.size(), 1u);
  }
  EXPECT_EQ(said, (std::vector<std::string>{"br_if 0", "if 0", "if 1", "if 1", "br_if 1"}));
  said.clear();
  for (const auto& [place, hint] : hints_of(hinted, "metadata.code.instr_freq")) {
    ASSERT_TRUE(at.contains(place));
    said.push_back(at.at(place) + " " + std::to_string(hint.at(0)));
    EXPECT_EQ(hint.size(), 1u);
  }
  // floor(log2(1001)) + 32, and so on: 1001 or 1000 iterations, 10 calls, 999, 10.
  EXPECT_EQ(said, (std::vector<std::string>{"loop 41", "call 35", "call 41", "call 35"}));

  // wabt reads the sections; the module is valid and gives the same result.
  const test::RunResult dump = in_dir("wasm-objdump -x h.wasm");
  EXPECT_EQ(dump.code, 0) << dump.err;
  EXPECT_EQ(dump.err, "");
  for (const char* part :
       {"name: \"metadata.code.branch_hint\"", "name: \"metadata.code.instr_freq\"", "func[1] <f>",
        "meta[", "name: \"metadata.code.compilation_priority\""}) {
    EXPECT_NE(dump.out.find(part), std::string::npos) << part << dump.out;
  }
  EXPECT_EQ(in_dir("wasm-validate h.wasm").code, 0);
  EXPECT_EQ(tool("run --invoke f h.wasm 1000").out, plain.out);

  // If only blocks were counted, the edges follow from them.
  ASSERT_EQ(tool("run --invoke f --interval=1 --policy=never -O flow=blocks --profile b.upf m.wasm "
                 "1000")
                .code,
            0);
  EXPECT_EQ(read("b.upf").profile.methods.begin()->second.schema.find(SlotKind::kEdge, 1), nullptr);
  ASSERT_EQ(tool("profile export b.upf --format=wasm-hints --module m.wasm -o b.wasm").code, 0);
  EXPECT_EQ(test::slurp(path("b.wasm")), hinted);

  // Adding hints to a module with hints replaces the sections; functions are found by their names
  // and code.
  ASSERT_EQ(tool("profile export p.upf --format=wasm-hints --module h.wasm -o hh.wasm").code, 0);
  EXPECT_EQ(test::slurp(path("hh.wasm")), hinted);
  // With a minimum share of 1, only branches that always went one way get a hint.
  ASSERT_EQ(
      tool("profile export p.upf --format=wasm-hints --module m.wasm --min-share 1 -o s.wasm").code,
      0);
  EXPECT_EQ(hints_of(test::slurp(path("s.wasm")), "metadata.code.branch_hint").size(), 1u);
  ASSERT_EQ(tool("profile export p.upf --format=wasm-hints --module m.wasm --min-executions 1001 "
                 "-o e.wasm")
                .code,
            0);
  EXPECT_EQ(hints_of(test::slurp(path("e.wasm")), "metadata.code.branch_hint").size(), 1u);
}

// main calls through a table: $a 3 times of 4, $b 1 time of 4, except one call of $c in 1000.
constexpr const char* kTargets = R"((module
  (type $t (func (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (table funcref (elem $a $b $c))
  (func $never (export "never") (param i32) (result i32) (local.get 0))
  (func $c (type $t) (i32.const 3))
  (func $b (type $t) (i32.const 2))
  (func $a (type $t) (i32.const 1))
  (func $init (param i32) (result i32) (local.get 0))
  (func $f (export "f") (param $n i32) (result i32)
    (local $i i32) (local $s i32)
    (local.set $s (call $init (local.get $s)))
    (loop $top
      (local.set $s (i32.add (local.get $s)
        (call_indirect (type $t) (local.get $i)
          (select (i32.const 2)
            (i32.eqz (i32.and (local.get $i) (i32.const 3)))
            (i32.eq (local.get $i) (i32.const 500))))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $top (i32.lt_u (local.get $i) (local.get $n))))
    (local.get $s)))
)";

TEST_F(HintsTool, targets_and_priorities_are_those_that_were_measured) {
  write_text("m.wat", kTargets);
  ASSERT_EQ(in_dir("wat2wasm m.wat -o m.wasm").code, 0);
  const std::string run = "run --invoke f --interval=1 --policy=never --profile p.upf ";
  const test::RunResult plain = tool(run + "m.wasm 1000");
  ASSERT_EQ(plain.code, 0) << plain.err;
  const std::string hint = "profile export p.upf --format=wasm-hints --module ";
  const test::RunResult r = tool(hint + "m.wasm -o h.wasm");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("1 indirect calls with targets; 5 priorities"), std::string::npos) << r.err;
  const std::string hinted = test::slurp(path("h.wasm"));
  const auto at = instructions("m.wasm");
  // Functions: 0 is imported, then never, c, b, a, init, f. Of 1000 calls, 750 reach a, 249 b, and
  // 1 c.
  const Hints targets = hints_of(hinted, "metadata.code.call_targets");
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(at.at(targets.begin()->first), "call_indirect");
  EXPECT_EQ(targets.begin()->second, (Values{4, 75, 3, 24}));
  // In the order of their first calls: f, init, b, a, c; f is the hottest, then a and b.
  const Hints priorities = hints_of(hinted, "metadata.code.compilation_priority");
  EXPECT_EQ(priorities, (Hints{{{2, 0}, {4, 127}},
                               {{3, 0}, {2, 2}},
                               {{4, 0}, {3, 0}},
                               {{5, 0}, {1, 127}},
                               {{6, 0}, {0, 0}}}));
  // wabt 1.0.32 takes a function's number for a count, and warns if fewer bytes than that are left.
  const test::RunResult dump =
      in_dir("wasm-objdump -x h.wasm 2> warnings; ! grep -v 'invalid function index' warnings");
  EXPECT_EQ(dump.code, 0) << dump.out;
  for (const char* part : {"name: \"metadata.code.call_targets\"",
                           "name: \"metadata.code.compilation_priority\"", "func[5]:", "meta[0]"}) {
    EXPECT_NE(dump.out.find(part), std::string::npos) << part << dump.out;
  }
  EXPECT_EQ(in_dir("wasm-validate h.wasm").code, 0);
  EXPECT_EQ(tool("run --invoke f h.wasm 1000").out, plain.out);
  // The hinted module is a different one; targets are found by the functions' names and code.
  ASSERT_EQ(tool(hint + "h.wasm -o hh.wasm").code, 0);
  EXPECT_EQ(test::slurp(path("hh.wasm")), hinted);
  // Calls that ran too seldom, and targets that only another module has, are left out.
  ASSERT_EQ(tool(hint + "m.wasm --min-executions 1001 -o s.wasm").code, 0);
  EXPECT_TRUE(hints_of(test::slurp(path("s.wasm")), "metadata.code.call_targets").empty());
  ProfileFile p = read("p.upf");
  for (auto& [key, m] : p.profile.methods) {
    for (auto& [site, table] : m.tables) {
      Table moved;
      for (const auto& [to, entry] : table) {
        moved[{to.module_key + (to.value == 4 ? 1 : 0), to.value}] = entry;
      }
      table = moved;
    }
  }
  const std::string text = test::slurp(path("m.wasm"));
  const auto less = tools::add_hints({text.begin(), text.end()}, p, {}, nullptr);
  ASSERT_TRUE(less.ok());
  EXPECT_EQ(hints_of({less->begin(), less->end()}, "metadata.code.call_targets").begin()->second,
            (Values{3, 24}));
  // Without an order, the hottest functions come first.
  p.calls.first.clear();
  const auto orderless = tools::add_hints({text.begin(), text.end()}, p, {}, nullptr);
  const Hints by_heat =
      hints_of({orderless->begin(), orderless->end()}, "metadata.code.compilation_priority");
  EXPECT_EQ(by_heat.at({6, 0}), (Values{0, 0}));
  EXPECT_EQ(by_heat.at({4, 0}), (Values{1, 0}));
}

TEST_F(HintsTool, few_samples_say_nothing) {
  write_text("m.wat", kModule);
  ASSERT_EQ(in_dir("wat2wasm m.wat -o m.wasm").code, 0);
  ASSERT_EQ(tool("run --invoke f --interval=1 --policy=never --profile p.upf m.wasm 1000").code, 0);
  const std::string text = test::slurp(path("m.wasm"));
  const Bytes module(text.begin(), text.end());
  ProfileFile p = read("p.upf");
  tools::HintReport all, few, many;
  ASSERT_TRUE(tools::add_hints(module, p, {}, &all).ok());
  EXPECT_EQ(all.likely + all.unlikely, 5u);
  // The same counts, each of which represents eight, from 3 or from 3000 sampled calls.
  for (auto& [key, m] : p.profile.methods) {
    m.weigh(8);
    m.bursts = 0;
    m.sampled_calls = 3;
  }
  ASSERT_TRUE(tools::add_hints(module, p, {}, &few).ok());
  EXPECT_EQ(few.likely + few.unlikely, 0u);
  for (auto& [key, m] : p.profile.methods) m.sampled_calls = 3000;
  ASSERT_TRUE(tools::add_hints(module, p, {}, &many).ok());
  EXPECT_EQ(many.likely + many.unlikely, 5u);
}

TEST_F(HintsTool, programs_with_hints_give_the_same_answers) {
  for (const char* program : {"objects", "mix", "compress"}) {
    const std::string name = program, upf = name + ".upf", out = name + ".wasm";
    run(name, upf, "--interval=1 --policy=never");
    const test::RunResult r = tool("profile export " + upf + " --format=wasm-hints --module " +
                                   test::wasm_path(name) + " -o " + out);
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(in_dir("wasm-validate " + out).code, 0);
    const auto at = instructions(out);
    const std::string hinted = test::slurp(path(out));
    const Hints branches = hints_of(hinted, "metadata.code.branch_hint");
    EXPECT_GT(branches.size(), 0u);
    for (const auto& [place, hint] : branches) {
      const std::string what = at.contains(place) ? at.at(place) : "nothing";
      EXPECT_TRUE(what == "br_if" || what == "if") << what;
      EXPECT_LE(hint.at(0), 1u);
    }
    for (const auto& [place, hint] : hints_of(hinted, "metadata.code.instr_freq")) {
      const std::string what = at.contains(place) ? at.at(place) : "nothing";
      EXPECT_TRUE(what == "call" || what == "call_indirect" || what == "loop") << what;
      EXPECT_TRUE(hint.at(0) >= 1 && hint.at(0) <= 64);
    }
    for (const auto& [place, hint] : hints_of(hinted, "metadata.code.call_targets")) {
      EXPECT_EQ(at.contains(place) ? at.at(place).substr(0, 13) : "nothing", "call_indirect");
      uint32_t shares = 0;
      for (size_t i = 1; i < hint.size(); i += 2) shares += hint[i];
      EXPECT_TRUE(hint.size() % 2 == 0 && shares >= 1 && shares <= 100) << shares;
    }
    std::set<uint32_t> places;
    for (const auto& [place, hint] : hints_of(hinted, "metadata.code.compilation_priority")) {
      EXPECT_EQ(place.second, 0u);
      EXPECT_TRUE(hint.size() == 1 || hint.size() == 2);
      EXPECT_TRUE(hint.back() <= 64 || hint.back() == 127 || hint.size() == 1);
      EXPECT_TRUE(places.insert(hint.at(0)).second);
    }
    EXPECT_GT(places.size(), 5u);
    EXPECT_EQ(*places.rbegin() + 1, places.size());
    const test::RunResult again = tool("run " + out);
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.out, test::expected_output(name));
  }
}

TEST_F(HintsTool, profile_of_another_module_is_refused) {
  run("mix", "mix.upf");
  const std::string module = test::wasm_path("objects");
  Profile other;
  MethodProfile m;
  m.name = "nowhere";
  m.schema = Schema::block_schema(1, 1);
  m.counts = {1};
  m.weigh(1);
  other.methods.emplace(m.key, m);
  write("other.upf", other);
  const test::RunResult r =
      tool("profile export other.upf --format=wasm-hints --module " + module + " -o h.wasm");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("the profile has no function of this module"), std::string::npos) << r.err;
  EXPECT_EQ(tool("profile export mix.upf --format=wasm-hints").code, 2);
}

}  // namespace
}  // namespace uptier::export_hints_test
