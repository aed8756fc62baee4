// Instances: linking, sharing, segments, start functions, and lifetimes.
#include <thread>

#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_instance_test {
namespace {

class WasmInstance : public WasmModes {};
UPTIER_IN_ALL_MODES(WasmInstance);

void nothing(void*, Instance&, const uint64_t*, uint64_t*) noexcept {}

// ---- Linking -----------------------------------------------------------------------------------

TEST(WasmLink, unknown_import_is_unlinkable) {
  World world;
  for (const char* text :
       {"(module (import \"a\" \"b\" (func)))", "(module (import \"a\" \"b\" (memory 1)))",
        "(module (import \"a\" \"b\" (table 1 funcref)))",
        "(module (import \"a\" \"b\" (global i32)))"}) {
    Instantiation made = world.try_make(text);
    EXPECT_FALSE(made.ok());
    EXPECT_TRUE(made.unlinkable());
    EXPECT_EQ(made.error->code, ErrorCode::kNotFound);
    EXPECT_NE(made.error->message.find("unknown import"), std::string::npos);
    EXPECT_NE(made.error->message.find("\"a\".\"b\""), std::string::npos);
  }
}

TEST(WasmLink, imports_of_another_type_are_unlinkable) {
  World world;
  world.linker().define({"h", "f", {{Type::kI32}, {}}, nothing, nullptr});
  world.make_as("m", R"((module
    (func (export "f") (param i64))
    (memory (export "mem") 2 5) (table (export "tab") 10 funcref)
    (global (export "const") i32 (i32.const 1)) (global (export "var") (mut i32) (i32.const 1))))");
  for (const char* wanted : {
           "\"h\" \"f\" (func (param i64))",
           "\"h\" \"f\" (func (param i32) (result i32))",
           "\"h\" \"f\" (memory 1)",
           "\"m\" \"f\" (func)",
           "\"m\" \"f\" (global i32)",
           "\"m\" \"mem\" (memory 3)",
           "\"m\" \"mem\" (memory 1 4)",
           "\"m\" \"mem\" (table 1 funcref)",
           "\"m\" \"tab\" (table 11 funcref)",
           "\"m\" \"tab\" (table 1 20 funcref)",
           "\"m\" \"const\" (global (mut i32))",
           "\"m\" \"const\" (global i64)",
           "\"m\" \"var\" (global i32)",
           "\"m\" \"var\" (func)",
       }) {
    Instantiation made = world.try_make("(module (import " + std::string(wanted) + "))");
    ASSERT_FALSE(made.ok()) << wanted;
    EXPECT_TRUE(made.unlinkable()) << wanted;
    EXPECT_EQ(made.error->code, ErrorCode::kInvalidInput) << wanted;
  }
  for (const char* wanted : {
           "\"h\" \"f\" (func (param i32))",
           "\"m\" \"f\" (func (param i64))",
           "\"m\" \"mem\" (memory 0 5)",
           "\"m\" \"mem\" (memory 2)",
           "\"m\" \"tab\" (table 10 funcref)",
           "\"m\" \"const\" (global i32)",
           "\"m\" \"var\" (global (mut i32))",
       }) {
    EXPECT_TRUE(world.try_make("(module (import " + std::string(wanted) + "))").ok()) << wanted;
  }
}

TEST(WasmLink, grown_memory_is_linked_by_its_present_size) {
  World world;
  Instance& m = world.make_as("m", "(module (memory (export \"mem\") 1 4))");
  EXPECT_FALSE(world.try_make("(module (import \"m\" \"mem\" (memory 3)))").ok());
  EXPECT_EQ(m.memory()->grow(2), 1);
  EXPECT_TRUE(world.try_make("(module (import \"m\" \"mem\" (memory 3)))").ok());
}

TEST(WasmLink, later_definition_replaces_earlier) {
  World world;
  world.make_as("m", "(module (func (export \"f\") (result i32) i32.const 1))");
  world.make_as("m", "(module (func (export \"f\") (result i32) i32.const 2))");
  Instance& i =
      world.make("(module (import \"m\" \"f\" (func (result i32))) (export \"f\" (func 0)))");
  EXPECT_EQ(call1(i, "f"), 2u);
}

TEST(WasmLink, too_large_memories_and_tables_are_refused_without_a_crash) {
  EngineOptions options;
  options.max_pages = 10;
  options.max_table_entries = 100;
  World world(kModes[0], options);
  Instantiation memory = world.try_make("(module (memory 11))");
  ASSERT_TRUE(memory.error.has_value());
  EXPECT_EQ(memory.error->code, ErrorCode::kResourceExhausted);
  EXPECT_FALSE(memory.unlinkable());
  Instantiation table = world.try_make("(module (table 101 funcref))");
  ASSERT_TRUE(table.error.has_value());
  EXPECT_EQ(table.error->code, ErrorCode::kResourceExhausted);
  EXPECT_TRUE(world.try_make("(module (memory 10) (table 100 funcref))").ok());
}

// ---- Sharing ------------------------------------------------------------------------------------

TEST_P(WasmInstance, functions_run_in_the_instance_they_belong_to) {
  Instance& a = world.make_as("a", R"((module
    (global $n (mut i32) (i32.const 100)) (memory 1) (data (i32.const 0) "\2a")
    (func (export "bump") (result i32)
      (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n))
    (func (export "peek") (result i32) (i32.load8_u (i32.const 0)))
    (func (export "pair") (result i32 i32) (global.get $n) (i32.const 7))))");
  Instance& b = world.make(R"((module
    (import "a" "bump" (func $bump (result i32)))
    (import "a" "peek" (func $peek (result i32)))
    (import "a" "pair" (func $pair (result i32 i32)))
    (global $n (mut i32) (i32.const 0)) (memory 1) (data (i32.const 0) "\07")
    (func $own (result i32 i32) (i32.const 1) (i32.const 2))
    (export "again" (func $bump))
    (func (export "f") (result i32)
      (i32.add (i32.mul (call $bump) (i32.const 1000)) (call $peek)))
    (func (export "pairs") (result i32 i32 i32 i32) (call $own) (call $pair))))");
  EXPECT_EQ(call1(b, "f"), 101042u);
  EXPECT_EQ(call1(b, "again"), 102u);
  EXPECT_EQ(call1(a, "bump"), 103u);
  EXPECT_EQ(call(b, "pairs"),
            (std::vector<Val>{Val::i32(1), Val::i32(2), Val::i32(103), Val::i32(7)}));
}

TEST_P(WasmInstance, memories_tables_and_globals_are_shared_by_reference) {
  Instance& a = world.make_as("a", R"((module
    (memory (export "mem") 1 3) (table (export "tab") 4 funcref)
    (global (export "g") (mut i64) (i64.const 5))
    (type $t (func (result i32)))
    (func (export "call") (param i32) (result i32) (call_indirect (type $t) (local.get 0)))
    (func (export "load") (param i32) (result i32) (i32.load8_u (local.get 0)))
    (func (export "pages") (result i32) memory.size)))");
  Instance& b = world.make(R"((module
    (import "a" "mem" (memory 1)) (import "a" "tab" (table 4 funcref))
    (import "a" "g" (global $g (mut i64)))
    (data (i32.const 10) "\63") (elem (i32.const 2) $f)
    (func $f (result i32) (i32.wrap_i64 (global.get $g)))
    (func (export "set") (global.set $g (i64.const 77)))
    (func (export "grow") (result i32) (memory.grow (i32.const 1)))
    (func (export "poke") (i32.store8 (i32.const 65536) (i32.const 9)))))");
  EXPECT_EQ(call1(a, "load", {Val::i32(10)}), 0x63u);
  EXPECT_EQ(call1(a, "call", {Val::i32(2)}), 5u);
  call(b, "set");
  EXPECT_EQ(call1(a, "call", {Val::i32(2)}), 77u);
  EXPECT_EQ(a.global(0).get(), Val::i64(77));
  EXPECT_EQ(call_trap(a, "load", {Val::i32(65536)}).code, TrapCode::kOutOfBoundsMemory);
  EXPECT_EQ(call1(b, "grow"), 1u);
  call(b, "poke");
  EXPECT_EQ(call1(a, "load", {Val::i32(65536)}), 9u);
  EXPECT_EQ(call1(a, "pages"), 2u);
}

TEST_P(WasmInstance, instances_of_one_module_share_code_and_nothing_else) {
  Module& m = world.load(R"((module (memory 1) (global $n (mut i32) (i32.const 0))
    (func (export "add") (param i32) (result i32)
      (global.set $n (i32.add (global.get $n) (local.get 0)))
      (i32.store (i32.const 8) (global.get $n))
      (i32.load (i32.const 8)))))");
  Instance& a = world.make(m);
  Instance& b = world.make(m);
  EXPECT_EQ(a.function(0).entry, b.function(0).entry);
  for (int n = 0; n < 50; ++n) {
    EXPECT_EQ(call1(a, "add", {Val::i32(1)}), static_cast<uint32_t>(n + 1));
    EXPECT_EQ(call1(b, "add", {Val::i32(3)}), static_cast<uint32_t>(3 * n + 3));
  }
}

TEST_P(WasmInstance, stores_on_different_threads_share_a_module) {
  Module& m = world.load(R"((module (memory 1) (global $n (mut i32) (i32.const 0))
    (func $pair (param i32) (result i32 i32) (local.get 0) (i32.mul (local.get 0) (i32.const 3)))
    (func (export "f") (param i32) (result i32) (local i32)
      (loop $l (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
        (br_if $l (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 50))))
      (call $pair (local.get 0)) i32.add (global.set $n)
      (i32.add (global.get $n) (i32.load (i32.const 0))))))");
  auto work = [&](int thread, int* wrong) {
    Linker linker;
    Store store(world.engine());
    Instantiation made = store.instantiate(m, linker);
    if (!made.ok()) ++*wrong;
    for (int n = 1; made.ok() && n <= 300; ++n) {
      auto r = made.instance->invoke("f", std::vector<Val>{Val::i32(thread * 1000 + n)});
      uint32_t want = 4 * (thread * 1000 + n) + 50 * n;
      *wrong += !r.ok() || !r->ok() || r->results[0].bits != want;
    }
  };
  int wrong[3] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) threads.emplace_back(work, t, &wrong[t]);
  for (auto& t : threads) t.join();
  for (int w : wrong) EXPECT_EQ(w, 0);
}

// ---- Segments and start -------------------------------------------------------------------------

TEST_P(WasmInstance, segments_before_a_failing_one_stay_written) {
  Instance& a =
      world.make_as("a", R"((module (memory (export "mem") 1) (table (export "tab") 2 funcref)
    (type $t (func (result i32)))
    (func (export "load") (param i32) (result i32) (i32.load8_u (local.get 0)))
    (func (export "call") (result i32) (call_indirect (type $t) (i32.const 1)))))");
  Instantiation made = world.try_make(R"((module
    (import "a" "mem" (memory 1)) (import "a" "tab" (table 2 funcref))
    (func $f (result i32) i32.const 66)
    (elem (i32.const 1) $f)
    (data (i32.const 3) "\05") (data (i32.const 65535) "ab") (data (i32.const 4) "\06")))");
  EXPECT_FALSE(made.ok());
  EXPECT_FALSE(made.error.has_value());
  EXPECT_EQ(made.trap.code, TrapCode::kOutOfBoundsMemory);
  EXPECT_EQ(call1(a, "load", {Val::i32(3)}), 5u);
  EXPECT_EQ(call1(a, "load", {Val::i32(65535)}), 0u);
  EXPECT_EQ(call1(a, "load", {Val::i32(4)}), 0u);
  // The function works although its instance was never completed.
  EXPECT_EQ(call1(a, "call"), 66u);
}

TEST_P(WasmInstance, elements_that_do_not_fit_trap_before_any_is_written) {
  Instance& a = world.make_as("a", "(module (table (export \"tab\") 2 funcref))");
  Instantiation made = world.try_make(R"((module (import "a" "tab" (table 2 funcref))
    (func $f) (elem (i32.const 1) $f $f)))");
  EXPECT_EQ(made.trap.code, TrapCode::kOutOfBoundsTable);
  EXPECT_EQ(a.table()->entries()[1].entry, nullptr);
}

TEST_P(WasmInstance, start_runs_once_everything_is_there) {
  Instance& i = world.make(R"((module (memory 1) (data (i32.const 0) "\09")
    (global $g (mut i32) (i32.const 0)) (start $s)
    (func $s (global.set $g (i32.add (global.get $g) (i32.load8_u (i32.const 0)))))
    (func (export "g") (result i32) (global.get $g))))");
  EXPECT_EQ(call1(i, "g"), 9u);
}

TEST_P(WasmInstance, trap_of_a_start_function_is_reported_with_its_place) {
  Instantiation made = world.try_make("(module (start $s) (func $s unreachable))");
  EXPECT_FALSE(made.ok());
  EXPECT_EQ(made.trap.code, TrapCode::kUnreachable);
  EXPECT_EQ(made.trap.function_name, "s");
}

TEST_P(WasmInstance, globals_are_initialized_from_imported_ones) {
  world.linker().define("h", "g", world.store().create_global({Type::kI32, false}, 40));
  Instance& i = world.make(R"((module (import "h" "g" (global $h i32)) (memory 1)
    (global $own (export "own") i32 (global.get $h))
    (data (global.get $h) "\07")
    (func (export "f") (result i32)
      (i32.add (global.get $own) (i32.load8_u (global.get $h))))))");
  EXPECT_EQ(call1(i, "f"), 47u);
}

TEST(WasmStore, modules_may_go_once_their_stores_are_gone) {
  World world;
  Bytes bytes = assemble("(module (memory 1) (func (export \"f\") (result i32) i32.const 3))");
  for (int n = 0; n < 5; ++n) {
    auto module = Module::load(world.engine(), bytes);
    ASSERT_TRUE(module.ok());
    Store store(world.engine());
    Instantiation made = store.instantiate(**module, world.linker());
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(call1(*made.instance, "f"), 3u);
  }
}

TEST(WasmStore, one_store_may_go_before_another_of_the_same_module) {
  World world;
  Module& m = world.load("(module (memory 1) (func (export \"f\") (result i32) i32.const 3))");
  auto first = std::make_unique<Store>(world.engine());
  Instance* a = first->instantiate(m, world.linker()).instance;
  Instance& b = world.make(m);
  EXPECT_EQ(call1(*a, "f"), 3u);
  first.reset();
  EXPECT_EQ(call1(b, "f"), 3u);
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_instance_test
