// Functions get a method when something refers to them, so an unreferenced function costs only its
// bytes.
#include <algorithm>
#include <string>

#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_lazy_methods_test {
namespace {

// f0 calls f1, f1 calls f2 ..., up to `called`; nothing calls the rest.
std::string chain(int count, int called, const std::string& more = "") {
  std::string text = "(module " + more;
  for (int i = 0; i < count; ++i) {
    text += "(func $f" + std::to_string(i) + " (result i32) ";
    text += i < called ? "(i32.add (i32.const 1) (call $f" + std::to_string(i + 1) + ")))"
                       : "(i32.const " + std::to_string(i) + "))";
  }
  return text + "(export \"first\" (func 0)))";
}

size_t methods_of(World& w) { return w.engine().runtime().report().methods_registered; }

TEST(WasmLazyMethods, only_what_is_referred_to_has_a_method) {
  World w;
  Instance& i = w.make(chain(1000, 3));
  EXPECT_EQ(methods_of(w), 1u);  // the export
  EXPECT_EQ(call1(i, "first"), 6u);
  EXPECT_EQ(methods_of(w), 4u);  // and the functions it has called
  EXPECT_NE(i.function(700).entry, nullptr);
  EXPECT_EQ(methods_of(w), 5u);
  EXPECT_EQ(i.function(700).method, i.function(700).method);
  EXPECT_EQ(methods_of(w), 5u);
}

TEST(WasmLazyMethods, elements_and_all_may_be_registered) {
  World w;
  Module& m = w.load(chain(20, 0, "(table 8 funcref) (elem (i32.const 1) 7 8) (elem func 9)"));
  w.make(m);
  EXPECT_EQ(methods_of(w), 4u);
  auto all = m.methods(Bounds::kGuarded);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), 20u);
  EXPECT_EQ(methods_of(w), 20u);
}

TEST(WasmLazyMethods, a_module_may_have_more_functions_than_a_runtime_has_methods) {
  Options options;
  options.max_methods = 16;
  World w(kModes[0], {}, options);
  Instance& i = w.make(chain(1000, 5));
  EXPECT_EQ(call1(i, "first"), 10u);
  Instance& more = w.make(chain(1000, 50));
  TrapReport trap = call_trap(more, "first");
  EXPECT_EQ(trap.code, TrapCode::kNoCode);
  EXPECT_NE(trap.message.find("max_methods"), std::string::npos) << trap.message;
}

// A trap names a function by the name section, by its export, or by its number.
TEST(WasmLazyMethods, traps_name_functions_all_the_same) {
  World w;
  Instance& i = w.make(R"((module (func $inner (unreachable)) (func (call 0))
                            (export "outer" (func 1))))");
  EXPECT_EQ(call_trap(i, "outer").text(),
            "unreachable at " + call_trap(i, "outer").text().substr(15));
  EXPECT_EQ(call_trap(i, "outer").function_name, "inner");
}

TEST(WasmLazyMethods, exports_are_found_by_name_however_many_there_are) {
  std::string text = "(module (func (result i32) (i32.const 5))";
  for (int k = 0; k < 500; ++k)
    text += "(export \"e" + std::to_string(k * 7919 % 500) + "\" (func 0))";
  World w;
  Instance& i = w.make(text + ")");
  for (int k = 0; k < 500; ++k) EXPECT_EQ(call1(i, "e" + std::to_string(k)), 5u);
  EXPECT_EQ(i.module().find_export("e500"), nullptr);
  EXPECT_EQ(i.module().find_export(""), nullptr);
}

// ---- Bombs, in all modes ------------------------------------------------------------------------

class WasmBombs : public WasmModes {};
UPTIER_IN_ALL_MODES(WasmBombs);

// k loops over k locals; each loop repeats while its own local is below 3. Returns the sum of the
// locals.
TEST_P(WasmBombs, loops_over_locals_compute_what_they_should) {
  constexpr int k = 2500;
  std::string text = "(module (func (export \"sum\") (param i32) (result i32) (local";
  for (int i = 0; i < k; ++i) text += " i32";
  text += ")\n";
  for (int i = 1; i <= k; ++i) {
    std::string x = std::to_string(i);
    text += "loop local.get " + x + " i32.const 1 i32.add local.tee " + x +
            " i32.const 3 i32.lt_s br_if 0 end\n";
  }
  text += "local.get 0";
  for (int i = 1; i <= k; ++i) text += " local.get " + std::to_string(i) + " i32.add";
  Instance& i = world.make(text + "))");
  for (uint32_t n : {0u, 5u, 9u}) { EXPECT_EQ(call1(i, "sum", {{Type::kI32, n}}), n + 3u * k); }
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_lazy_methods_test
