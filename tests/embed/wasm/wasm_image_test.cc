// Images of WebAssembly modules: another engine takes the code of first calls from there, with the
// same results, and without describing anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "profile/image/image_reader.h"
#include "tests/support/private_dir.h"
#include "tests/support/wasm_world.h"
#include "tiering/image/method_record.h"
#include "uptier/events.h"

namespace uptier::wasm::test {
namespace {

// Loops, direct and indirect calls, calls of helpers and of imports, tables of jumps, floats, traps.
constexpr std::string_view kProgram = R"((module
  (import "env" "add" (func $add (param i32 i32) (result i32)))
  (memory (export "memory") 1 4)
  (table 2 funcref)
  (elem (i32.const 0) $twice $square)
  (type $unary (func (param i32) (result i32)))
  (global $calls (mut i32) (i32.const 0))
  (func $twice (param i32) (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (i32.mul (local.get 0) (i32.const 2)))
  (func $square (param i32) (result i32) (i32.mul (local.get 0) (local.get 0)))
  (func $fib (export "fib") (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0))
      (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                     (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func (export "sum") (param i32) (result i32) (local i32 i32)
    (loop $next
      (local.set 1 (call $add (local.get 1) (local.get 2)))
      (local.set 2 (i32.add (local.get 2) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get 2) (local.get 0))))
    (local.get 1))
  (func (export "each") (param i32) (result i32) (local i32 i32)
    (loop $next
      (local.set 1 (i32.add (local.get 1)
        (call_indirect (type $unary) (local.get 2) (i32.and (local.get 2) (i32.const 1)))))
      (local.set 2 (i32.add (local.get 2) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get 2) (local.get 0))))
    (i32.add (local.get 1) (global.get $calls)))
  (func (export "pick") (param i32) (result f64)
    (block $d (block $c (block $b (block $a
      (br_table $a $b $c $a $b $c $a $d (local.get 0)))
      (return (f64.const 1.2345678901)))
      (return (f64.const -3)))
      (return (f64.sqrt (f64.convert_i32_s (local.get 0)))))
    (f64.const 99))
  (func (export "grow") (result i32)
    (memory.fill (i32.const 16) (i32.const 7) (i32.const 1000))
    (drop (memory.grow (i32.const 1)))
    (i32.add (memory.size) (i32.load (i32.const 512))))
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "divide") (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
  (func (export "big") (result i64) (i64.const 0x123456789abcdef0))
  (func (export "never") (param i32) (result i32) (call $square (local.get 0)))
))";

void add(void*, Instance&, const uint64_t* args, uint64_t* results) noexcept {
  results[0] = static_cast<uint32_t>(args[0] + args[1]);
}

// Counts descriptions.
class Described final : public EventSubscriber {
 public:
  void on_event(const Event& e) noexcept override { count += e.kind == EventKind::kDescribed; }
  uint64_t count = 0;
};

std::string text_of(const CallResult& r) {
  if (!r.ok()) return r.trap.text();
  std::string text;
  for (const Val& v : r.results) text += std::to_string(v.bits) + " ";
  return text;
}

std::vector<Val> ints(std::initializer_list<uint32_t> list) {
  std::vector<Val> values;
  for (uint32_t n : list) values.push_back({Type::kI32, n});
  return values;
}

// What the program answers; the traps say where they were.
std::string answers(Instance& i) {
  std::string all;
  auto ask = [&](const char* name, std::vector<Val> args) {
    Result<CallResult> r = i.invoke(name, args);
    all += std::string(name) + ": " + (r ? text_of(*r) : r.error().message) + "\n";
  };
  ask("fib", ints({15}));
  ask("sum", ints({1000}));
  ask("each", ints({200}));
  for (uint32_t n = 0; n < 9; ++n) ask("pick", ints({n}));
  ask("grow", {});
  ask("load", ints({1 << 20}));
  ask("load", ints({16}));
  ask("divide", ints({7, 0}));
  ask("divide", ints({7, 2}));
  ask("big", {});
  return all;
}

class WasmImage : public testing::Test {
 protected:
  // An engine that may use the image, and has other methods and types before the module's.
  struct Run {
    explicit Run(const WasmImage& test, bool uses_image, Options options = {},
                 EngineOptions engine_options = {})
        : world(kAuto, plain(engine_options), with(test, options, uses_image)) {
      world.linker().define({"env", "add", {{Type::kI32, Type::kI32}, {Type::kI32}}, add, nullptr});
    }
    static EngineOptions plain(EngineOptions o) {
      o.blind_constants = false;
      return o;
    }
    static Options with(const WasmImage& test, Options o, bool uses_image) {
      if (uses_image) o.image = test.image_;
      o.log = [](void* to, LogLevel, std::string_view line) {
        static_cast<std::string*>(to)->append(line) += '\n';
      };
      o.log_user = &test.log_;
      return o;
    }
    std::string ask() { return answers(world.make(world.load(test_bytes))); }
    Runtime& runtime() { return world.engine().runtime(); }
    World world;
    Bytes test_bytes = assemble(kProgram);
  };

  // Makes the image from all functions, and returns what was made.
  ImageMade make_image(Options options = {}, std::string_view program = kProgram) {
    Run run(*this, false, options);
    Module& m = run.world.load(program);
    Result<std::vector<MethodId>> all = m.methods(Bounds::kGuarded);
    EXPECT_TRUE(all.ok());
    Result<ImageMade> made = run.runtime().write_image(image_, *all);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made ? *made : ImageMade{};
  }
  profile::Bytes file() const {
    std::ifstream in(image_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  void put(const profile::Bytes& bytes) const {
    std::ofstream out(image_, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }

  static constexpr Mode kAuto = {"all_tiers", TierMode::kAuto, false};
  uptier::test::PrivateDir dir_;
  const std::string image_ = dir_.path("it.img");
  mutable std::string log_;
};

TEST_F(WasmImage, gives_the_same_answers_without_descriptions) {
  const std::string expected = Run(*this, false).ask();
  const ImageMade made = make_image();
  EXPECT_EQ(made.methods, 11u) << made.first_left_out;
  EXPECT_EQ(made.left_out, 0u) << made.first_left_out;
  Options never;
  never.policy = PolicyMode::kNever;
  never.interval = 1 << 20;
  never.adaptive = false;
  Run run(*this, true, never);
  Described described;
  ASSERT_TRUE(run.runtime().subscribe(described, kinds_of(EventKind::kDescribed)).ok());
  EXPECT_EQ(run.ask(), expected);
  run.runtime().flush();
  ASSERT_TRUE(run.runtime().unsubscribe(described).ok());
  const ImageReport r = run.runtime().image_report();
  EXPECT_EQ(r.problem, "");
  EXPECT_EQ(r.methods, 11u);
  EXPECT_EQ(r.placed, 10u) << r.first_refused;  // nobody calls `never`
  EXPECT_EQ(r.refused, 0u) << r.first_refused;
  EXPECT_EQ(described.count, 1u);  // the adapter of the imported function
  EXPECT_EQ(log_, "");
}

TEST_F(WasmImage, code_from_an_image_is_observed_and_optimized) {
  make_image();
  Options options;
  options.policy = PolicyMode::kAlways;
  options.measure_rates = false;
  Run run(*this, true, options);
  Instance& i = run.world.make(run.world.load(run.test_bytes));
  for (int n = 0; n < 200; ++n) {
    EXPECT_EQ(call1(i, "fib", ints({15})), 610u);
    EXPECT_EQ(call1(i, "sum", ints({1000})), 499500u);
  }
  run.runtime().flush();
  uint64_t optimized = 0;
  for (int tries = 0; tries < 2000 && optimized < 2; ++tries) {
    call1(i, "fib", ints({15}));
    call1(i, "sum", ints({1000}));
    optimized = 0;
    for (const MethodReport& m : run.runtime().report().methods)
      optimized += m.tier == Tier::kOptimized;
  }
  EXPECT_GE(optimized, 2u);
  EXPECT_EQ(call1(i, "fib", ints({20})), 6765u);
}

// A method that nobody has described cannot be inlined: its description comes before its caller is
// optimized.
TEST_F(WasmImage, a_callee_from_an_image_is_inlined) {
  constexpr std::string_view kCaller = R"((module
    (func $small (param i32) (result i32) (i32.add (local.get 0) (i32.const 3)))
    (func (export "run") (param i32) (result i32) (local i32)
      (loop $next
        (local.set 1 (call $small (local.get 1)))
        (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      (local.get 1))))";
  make_image({}, kCaller);
  Options options;
  options.policy = PolicyMode::kAlways;
  options.measure_rates = false;
  Run run(*this, true, options);
  Instance& i = run.world.make(kCaller);
  uint32_t inlined = 0;
  for (int tries = 0; tries < 2000 && inlined == 0; ++tries) {
    EXPECT_EQ(call1(i, "run", ints({500})), 1500u);
    for (const MethodReport& m : run.runtime().report().methods) {
      for (const VersionReport& v : m.versions) inlined = std::max(inlined, v.inlined);
    }
  }
  EXPECT_EQ(run.runtime().image_report().placed, 2u);
  EXPECT_GE(inlined, 1u);
}

// The oracle of relocation: nothing of a process is in the file. Here the processes are two runtimes
// with other code spaces, other methods before, and other numbers of methods.
TEST_F(WasmImage, two_runtimes_make_equal_files) {
  make_image();
  const profile::Bytes first = file();
  Run other(*this, false);
  other.world.make(R"((module (func (export "f") (param i32) (result i32) (local.get 0))))");
  Module& m = other.world.load(kProgram);
  // The numbers of types must be the same; those of methods are not.
  ASSERT_TRUE(m.methods(Bounds::kExplicit).ok());
  Result<std::vector<MethodId>> all = m.methods(Bounds::kGuarded);
  ASSERT_TRUE(all.ok());
  ASSERT_TRUE(other.runtime().write_image(image_, *all).ok());
  const profile::Bytes second = file();
  Result<profile::ImageView> a = profile::ImageView::open(first),
                             b = profile::ImageView::open(second);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->contents().size(), 1u);
  ASSERT_EQ(b->contents().size(), 1u);
  // The hash of the content has the numbers of types in it, the code of `each` too.
  size_t equal = 0, methods = a->contents()[0].methods;
  for (uint64_t n = 0; n < methods; ++n) {
    equal += std::ranges::equal(a->record_at(a->contents()[0].row(n)),
                                b->record_at(b->contents()[0].row(n)));
  }
  EXPECT_GE(equal, methods - 1);
}

TEST_F(WasmImage, an_image_of_another_module_is_not_used) {
  make_image();
  Run run(*this, true);
  Instance& i =
      run.world.make(R"((module (func (export "f") (param i32) (result i32) (local.get 0))))");
  EXPECT_EQ(call1(i, "f", ints({5})), 5u);
  EXPECT_EQ(run.runtime().image_report().placed, 0u);
  EXPECT_EQ(run.runtime().image_report().problem, "");
}

TEST_F(WasmImage, numbers_of_types_are_part_of_the_content) {
  make_image();
  const std::string expected = Run(*this, false).ask();
  Run run(*this, true);
  run.world.make(R"((module (func (export "f") (param f64 f32) (result i64) (i64.const 1))))");
  EXPECT_EQ(run.ask(), expected);
  EXPECT_EQ(run.runtime().image_report().placed, 0u);
}

TEST_F(WasmImage, other_options_are_named_once) {
  Options pads;
  pads.landing_pads = true;
  make_image(pads);
  const std::string expected = Run(*this, false).ask();
  Run run(*this, true);
  EXPECT_EQ(run.ask(), expected);
  EXPECT_EQ(run.runtime().image_report().placed, 0u);
  EXPECT_NE(log_.find("the image is not used: " + image_ + ": it was made with options"),
            std::string::npos)
      << log_;
  EXPECT_EQ(std::ranges::count(log_, '\n'), 1);
}

TEST_F(WasmImage, options_that_rule_images_out_are_named) {
  make_image();
  Options fuel;
  fuel.fuel = 1 << 30;
  Run run(*this, true, fuel);
  EXPECT_NE(log_.find("option fuel rules images out"), std::string::npos) << log_;
  Result<ImageMade> made = run.runtime().write_image(image_, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kUnsupported);
}

TEST_F(WasmImage, blinded_constants_stay_hidden) {
  Run maker(*this, false);
  Options blind;
  blind.blind_constants = true;
  const std::string expected = maker.ask();
  make_image(blind);
  const profile::Bytes bytes = file();
  const uint64_t chosen = 0x123456789abcdef0;
  const auto* pattern = reinterpret_cast<const std::byte*>(&chosen);
  EXPECT_EQ(std::search(bytes.begin(), bytes.end(), pattern, pattern + 8), bytes.end());
  Run run(*this, true, blind);
  EXPECT_EQ(run.ask(), expected);
  EXPECT_EQ(run.runtime().image_report().placed, 10u) << log_;
}

// Some forty bits: each run starts a runtime. tests/profile/image/image_file_test.cc flips all.
TEST_F(WasmImage, a_flipped_bit_never_changes_an_answer) {
  make_image();
  const std::string expected = Run(*this, false).ask();
  const profile::Bytes whole = file();
  uint64_t used = 0;
  for (size_t bit = 0; bit < whole.size() * 8; bit += whole.size() * 8 / 40 + 1) {
    profile::Bytes damaged = whole;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    put(damaged);
    Run run(*this, true);
    EXPECT_EQ(run.ask(), expected) << "bit " << bit;
    used += run.runtime().image_report().placed != 0;
  }
  EXPECT_EQ(used, 0u);
}

TEST_F(WasmImage, code_that_ran_makes_an_image_too) {
  const std::string expected = [&] {
    Run run(*this, false);
    std::string all = run.ask();
    Result<ImageMade> made = run.runtime().write_image(image_, {});
    EXPECT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->methods, 10u);
    EXPECT_EQ(made->left_out, 1u);  // the adapter
    return all;
  }();
  Run run(*this, true);
  EXPECT_EQ(run.ask(), expected);
  EXPECT_EQ(run.runtime().image_report().placed, 10u) << log_;
}

TEST_F(WasmImage, records_are_read_as_they_were_written) {
  make_image();
  const profile::Bytes bytes = file();
  Result<profile::ImageView> view = profile::ImageView::open(bytes);
  ASSERT_TRUE(view.ok());
  for (const profile::ImageView::Content& c : view->contents()) {
    for (uint64_t n = 0; n < c.methods; ++n) {
      const profile::ByteSpan record = view->record_at(c.row(n));
      Result<tiering::MethodRecord> r = tiering::read_record(record);
      ASSERT_TRUE(r.ok()) << r.error().message;
      profile::Bytes again;
      ASSERT_TRUE(tiering::append_record(*r, again).ok());
      EXPECT_TRUE(std::ranges::equal(again, record));
      for (size_t length = 0; length < record.size(); ++length) {
        EXPECT_FALSE(tiering::read_record(record.first(length)).ok()) << length;
      }
    }
  }
}

}  // namespace
}  // namespace uptier::wasm::test
