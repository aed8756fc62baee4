// Instances of one module that import from each other: they share methods but not import slots.
#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_twins_test {
namespace {

constexpr const char* kTwin = R"((module
  (import "before" "g" (global $theirs (mut i32)))
  (import "before" "set" (func $set_theirs (param i32) (result i32)))
  (global $own (export "g") (mut i32) (i32.const 0))
  (func (export "set") (param i32) (result i32) (global.set $own (local.get 0)) (i32.const 1))
  (func (export "run") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $done i32) (local $now i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (global.get $theirs)))
      (local.set $done (call $set_theirs (local.get $i)))
      (local.set $now (global.get $theirs))
      (if (local.get $done)
        (then (local.set $sum (i32.xor (local.get $sum) (local.get $now))))
        (else (local.set $sum (i32.const 0))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (local.get $n))))
    (local.get $sum))))";

uint32_t expected(uint32_t n) {
  uint32_t sum = 0, theirs = 0;
  for (uint32_t i = 0; i < n; ++i) {
    sum += theirs;
    theirs = i;
    sum ^= theirs;
  }
  return sum;
}

// Each call is sampled and no clock decides, so the observed calls of an import are enough to
// inline it.
Options observed() {
  Options o;
  o.adaptive = false;
  o.interval = 1;
  o.measure_rates = false;
  o.trials = false;
  o.workers = 0;
  return o;
}

class WasmTwins : public WasmModes {};
UPTIER_IN_ALL_MODES(WasmTwins);

TEST_P(WasmTwins, a_global_that_one_imports_from_the_other_is_one_place) {
  World world(GetParam(), {}, observed());
  world.make_as("before", R"((module
    (global (export "g") (mut i32) (i32.const 0))
    (func (export "set") (param i32) (result i32) (i32.const 0))))");
  Module& module = world.load(kTwin);
  Instance& first = world.make(module);
  world.linker().define_instance("before", first);
  Instance& second = world.make(module);
  for (int turn = 0; turn < 300; ++turn) {
    call(first, "set", {Val{Type::kI32, 0}});
    ASSERT_EQ(call1(second, "run", {Val{Type::kI32, 200}}), expected(200)) << turn;
  }
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_twins_test
