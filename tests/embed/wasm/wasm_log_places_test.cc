// Lines of text that a module logs at places that a user names.
#include "embed/wasm/code_reader.h"
#include "tests/support/wasm_world.h"
#include "uptier/log_text.h"

namespace uptier::wasm::test::wasm_log_places_test {
namespace {

// Adds 0, 1, ..., n - 1 into local 2; local 3 is 0.5 times n.
constexpr const char* kSum = R"((module
  (func $sum (export "total") (param $n i32) (result i64) (local $i i32) (local $s i64)
      (local $half f64)
    (local.set $half (f64.mul (f64.const 0.5) (f64.convert_i32_s (local.get $n))))
    (loop $again
      (local.set $s (i64.add (local.get $s) (i64.extend_i32_s (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_s (local.get $i) (local.get $n))))
    (return (local.get $s))
    (i64.const 7))
  (func $odd (export "odd") (param i32) (result i32) (local.get 0))
  (func $name=of@1 (export "other") (param i32) (result i32) (local.get 0))))";

class WasmLogPlaces : public testing::Test {
 protected:
  void start(const Mode& mode) {
    world_ = std::make_unique<World>(mode);
    module_ = &world_->load(kSum);
  }
  void SetUp() override { start(kModes[2]); }  // instrumented: every call leaves lines

  // The offsets of the instructions of a function.
  std::vector<uint32_t> offsets(uint32_t function) const {
    std::vector<uint32_t> all;
    CodeReader reader(module_->info(), module_->info().functions[function]);
    for (uint32_t groups = reader.u32(); groups > 0; --groups) reader.local_group();
    while (!reader.done()) {
      all.push_back(reader.offset());
      reader.skip(immediates_of(reader.op()));
    }
    return all;
  }
  std::string at(uint32_t instruction) const {
    return "@" + std::to_string(offsets(0)[instruction]);
  }
  void log_at(const std::string& request) const {
    const Status s = module_->log_at(request);
    EXPECT_TRUE(s.ok()) << s.error().message;
  }
  std::string refusal(const std::string& request) const {
    const Status s = module_->log_at(request);
    return s.ok() ? "accepted" : s.error().message;
  }
  std::vector<std::string> lines() const {
    Runtime& runtime = world_->engine().runtime();
    std::vector<std::string> found;
    for (const LogLine& l : log_lines(runtime.read_log())) {
      found.push_back(log_text(runtime.log_format(l.format), l.arguments));
    }
    return found;
  }

  std::unique_ptr<World> world_;
  Module* module_ = nullptr;
};

using Lines = std::vector<std::string>;

TEST_F(WasmLogPlaces, a_function_logs_its_parameters_where_it_begins) {
  log_at("sum=n is {0}, the rest is {1} {2} {3}");
  Instance& i = world_->make(*module_);
  EXPECT_EQ(call1(i, "total", {Val::i32(4)}), 6u);
  EXPECT_EQ(lines(), Lines{"n is 4, the rest is 0 0 0"});
}

TEST_F(WasmLogPlaces, an_offset_is_an_instruction_in_the_middle) {
  log_at("total" + at(6) + "=round {1}: {{{2}}}");  // the first instruction of the loop
  log_at("0" + at(19) + "=end {2} {3}");            // after the loop, by the function's number
  Instance& i = world_->make(*module_);
  EXPECT_EQ(call1(i, "total", {Val::i32(3)}), 3u);
  EXPECT_EQ(lines(), (Lines{"round 0: {0}", "round 1: {0}", "round 2: {1}", "end 3 1.5"}));
}

TEST_F(WasmLogPlaces, values_are_signed_unsigned_or_hexadecimal) {
  log_at("odd={0} {0:u} {0:x}");
  Instance& i = world_->make(*module_);
  EXPECT_EQ(static_cast<uint32_t>(call1(i, "odd", {Val::i32(-2)})), 0xfffffffeu);
  EXPECT_EQ(lines(), Lines{"-2 4294967294 0xfffffffe"});
}

TEST_F(WasmLogPlaces, a_name_may_have_the_characters_of_a_request) {
  log_at("name=of@1=found {0}");
  Instance& i = world_->make(*module_);
  call1(i, "other", {Val::i32(9)});
  EXPECT_EQ(lines(), Lines{"found 9"});
}

TEST_F(WasmLogPlaces, results_are_the_same_in_all_tiers) {
  for (const Mode& mode : kModes) {
    start(mode);
    log_at("sum=n is {0}");
    log_at("sum" + at(6) + "=round {1:x} {3}");
    Instance& i = world_->make(*module_);
    for (int n = 1; n < 200; ++n) {
      EXPECT_EQ(call1(i, "total", {Val::i32(n)}), static_cast<uint64_t>(n) * (n - 1) / 2) << mode;
    }
    world_.reset();
  }
}

TEST_F(WasmLogPlaces, dead_code_logs_nothing) {
  const std::vector<uint32_t> all = offsets(0);
  log_at("sum@" + std::to_string(all[all.size() - 2]) + "=never");  // the i64.const after return
  Instance& i = world_->make(*module_);
  EXPECT_EQ(call1(i, "total", {Val::i32(4)}), 6u);
  EXPECT_TRUE(lines().empty());
}

TEST_F(WasmLogPlaces, a_refusal_names_the_request_and_the_rule) {
  const auto why = [](const std::string& request, const std::string& rule) {
    return "log place \"" + request + "\": " + rule;
  };
  const std::string no_function =
      "it names no function of the module; write FUNCTION=TEXT or FUNCTION@OFFSET=TEXT, with a "
      "name "
      "or a number";
  EXPECT_EQ(refusal("nobody=x"), why("nobody=x", no_function));
  EXPECT_EQ(refusal("sum"), why("sum", no_function));
  EXPECT_EQ(refusal("3=x"), why("3=x", no_function)) << "there are three functions";
  EXPECT_EQ(refusal("sum@abc=x"), why("sum@abc=x", no_function));
  const std::string middle = std::to_string(offsets(0)[0] + 1);
  EXPECT_EQ(
      refusal("sum@" + middle + "=x"),
      why("sum@" + middle + "=x", "no instruction of the function begins at offset " + middle +
                                      "; they lie at " + std::to_string(offsets(0).front()) +
                                      " to " + std::to_string(offsets(0).back())));
  EXPECT_EQ(refusal("sum={4}"), why("sum={4}", "{4}: the function has 4 locals"));
  EXPECT_EQ(refusal("sum={n}"), why("sum={n}", "{n} is not {N}, {N:u} or {N:x}"));
  EXPECT_EQ(refusal("sum={0"), why("sum={0", "{0 is not {N}, {N:u} or {N:x}"));
  EXPECT_EQ(refusal("sum={3:x}"), why("sum={3:x}", "{3:x}: the local is a floating-point number"));
  EXPECT_NE(refusal("sum=}").find("a } without a {"), std::string::npos);
  EXPECT_NE(refusal("sum={0}{0}{0}{0}{0}{0}{0}{0}{0}").find("more than 8 placeholders"),
            std::string::npos);
  world_->make(*module_);
  EXPECT_NE(refusal("sum=late").find("name places before it is instantiated"), std::string::npos);
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_log_places_test
