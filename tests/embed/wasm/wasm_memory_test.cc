// Memories: growth, bounds with both ways to guard them, bulk instructions.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_memory_test {
namespace {

class WasmMemory : public WasmModes {};
UPTIER_IN_ALL_MODES(WasmMemory);

constexpr const char* kAccesses = R"((module (memory (export "m") 1 5)
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "size") (result i32) memory.size)
  (func (export "load8") (param i32) (result i32) (i32.load8_u (local.get 0)))
  (func (export "load") (param i32) (result i64) (i64.load (local.get 0)))
  (func (export "load_far") (param i32) (result i64) (i64.load offset=0xffffffff (local.get 0)))
  (func (export "load_near") (param i32) (result i64) (i64.load offset=65528 (local.get 0)))
  (func (export "store") (param i32 i64) (i64.store (local.get 0) (local.get 1)))
  (func (export "store_far") (param i32) (i32.store16 offset=0xfffffffe (local.get 0) (i32.const 1)))))";

TEST_P(WasmMemory, accesses_at_the_edge_are_exact) {
  Instance& i = world.make(kAccesses);
  call(i, "store", {Val::i32(65528), Val::i64(0x1122334455667788)});
  EXPECT_EQ(call1(i, "load", {Val::i32(65528)}), 0x1122334455667788u);
  EXPECT_EQ(call1(i, "load_near", {Val::i32(0)}), 0x1122334455667788u);
  EXPECT_EQ(call1(i, "load8", {Val::i32(65535)}), 0x11u);
  for (int32_t at : {65529, 65535, 65536, 1 << 30, -8, -1}) {
    EXPECT_EQ(call_trap(i, "load", {Val::i32(at)}).code, TrapCode::kOutOfBoundsMemory) << at;
    EXPECT_EQ(call_trap(i, "store", {Val::i32(at), Val::i64(-1)}).code,
              TrapCode::kOutOfBoundsMemory)
        << at;
  }
  EXPECT_EQ(call_trap(i, "load_near", {Val::i32(1)}).code, TrapCode::kOutOfBoundsMemory);
  for (int32_t at : {0, 1, -1}) {
    EXPECT_EQ(call_trap(i, "load_far", {Val::i32(at)}).code, TrapCode::kOutOfBoundsMemory) << at;
    EXPECT_EQ(call_trap(i, "store_far", {Val::i32(at)}).code, TrapCode::kOutOfBoundsMemory) << at;
  }
  // A store across the edge writes nothing.
  EXPECT_EQ(call1(i, "load8", {Val::i32(65535)}), 0x11u);
}

// An index that is a difference wraps around below zero: out of bounds without an offset, but in
// bounds if an offset leads past 2^32 to the beginning again.
TEST_P(WasmMemory, indices_that_are_differences_wrap_around) {
  Instance& i = world.make(R"((module (memory 1)
    (data (i32.const 0) "\01\02\03\04\05\06\07\08\09\0a\0b\0c\0d\0e\0f\10\11\12")
    (func (export "near") (param i32) (result i64)
      (i64.load (i32.add (local.get 0) (i32.const -8))))
    (func (export "sub") (param i32) (result i32)
      (i32.load8_u (i32.sub (local.get 0) (i32.const 65536))))
    (func (export "offset") (param i32) (result i64)
      (i64.load offset=8 (i32.add (local.get 0) (i32.const -8))))
    (func (export "up") (param i32) (result i32)
      (i32.load8_u (i32.add (local.get 0) (i32.const 8))))
    (func (export "store") (param i32 i64)
      (i64.store (i32.add (local.get 0) (i32.const -8)) (local.get 1)))))");
  EXPECT_EQ(call1(i, "near", {Val::i32(8)}), 0x0807060504030201u);
  EXPECT_EQ(call1(i, "near", {Val::i32(9)}), 0x0908070605040302u);
  EXPECT_EQ(call1(i, "sub", {Val::i32(65536)}), 1u);
  EXPECT_EQ(call1(i, "offset", {Val::i32(8)}), 0x100f0e0d0c0b0a09u);
  EXPECT_EQ(call1(i, "up", {Val::i32(-8)}), 1u) << "a sum may come round to the beginning";
  for (int32_t at : {0, 1, 7}) {
    for (const char* name : {"near", "offset"}) {
      EXPECT_EQ(call_trap(i, name, {Val::i32(at)}).code, TrapCode::kOutOfBoundsMemory)
          << name << at;
    }
    EXPECT_EQ(call_trap(i, "store", {Val::i32(at), Val::i64(-1)}).code,
              TrapCode::kOutOfBoundsMemory);
  }
  for (int32_t at : {0, 1, 65535, -1}) {
    EXPECT_EQ(call_trap(i, "sub", {Val::i32(at)}).code, TrapCode::kOutOfBoundsMemory) << at;
  }
  EXPECT_EQ(call1(i, "near", {Val::i32(8)}), 0x0807060504030201u) << "nothing was written";
  call(i, "store", {Val::i32(9), Val::i64(-1)});
  EXPECT_EQ(call1(i, "near", {Val::i32(8)}), 0xffffffffffffff01u);
}

TEST_P(WasmMemory, growing_gives_zeroed_pages_up_to_the_maximum) {
  Instance& i = world.make(kAccesses);
  call(i, "store", {Val::i32(0), Val::i64(5)});
  EXPECT_EQ(call1(i, "grow", {Val::i32(0)}), 1u);
  EXPECT_EQ(call1(i, "grow", {Val::i32(2)}), 1u);
  EXPECT_EQ(call1(i, "size"), 3u);
  EXPECT_EQ(call1(i, "load", {Val::i32(0)}), 5u);
  EXPECT_EQ(call1(i, "load", {Val::i32(3 * 65536 - 8)}), 0u);
  EXPECT_EQ(call_trap(i, "load8", {Val::i32(3 * 65536)}).code, TrapCode::kOutOfBoundsMemory);
  for (int32_t delta : {3, 65535, 65536, -1}) {
    EXPECT_EQ(call1(i, "grow", {Val::i32(delta)}), 0xffffffffu) << delta;
  }
  EXPECT_EQ(call1(i, "size"), 3u);
  EXPECT_EQ(call1(i, "grow", {Val::i32(2)}), 3u);
  EXPECT_EQ(call1(i, "grow", {Val::i32(1)}), 0xffffffffu);
}

TEST_P(WasmMemory, growth_inside_a_function_is_seen_by_the_accesses_that_follow) {
  Instance& i = world.make(R"((module (memory 1)
    (func (export "f") (result i32) (local i32)
      (i32.store (i32.const 0) (i32.const 123))
      (loop $l
        (drop (memory.grow (i32.const 16)))
        (i32.store (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)) (i32.const 1))
        (br_if $l (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 20))))
      (i32.load (i32.const 0)))))");
  EXPECT_EQ(call1(i, "f"), 123u);
  EXPECT_EQ(i.memory()->pages(), 321u);
}

TEST_P(WasmMemory, empty_memory_has_no_accessible_byte) {
  Instance& i = world.make(R"((module (memory 0)
    (func (export "load") (result i32) (i32.load8_u (i32.const 0)))
    (func (export "grow") (result i32) (memory.grow (i32.const 1)))
    (func (export "fill") (memory.fill (i32.const 0) (i32.const 1) (i32.const 0)))))");
  EXPECT_EQ(call_trap(i, "load").code, TrapCode::kOutOfBoundsMemory);
  call(i, "fill");
  EXPECT_EQ(call1(i, "grow"), 0u);
  EXPECT_EQ(call1(i, "load"), 0u);
}

TEST_P(WasmMemory, bulk_instructions_check_the_whole_range_first) {
  Instance& i = world.make(R"((module (memory 1) (data $d "hello")
    (func (export "fill") (param i32 i32 i32)
      (memory.fill (local.get 0) (local.get 1) (local.get 2)))
    (func (export "copy") (param i32 i32 i32)
      (memory.copy (local.get 0) (local.get 1) (local.get 2)))
    (func (export "init") (param i32 i32 i32)
      (memory.init $d (local.get 0) (local.get 1) (local.get 2)))
    (func (export "drop") (data.drop $d))
    (func (export "at") (param i32) (result i32) (i32.load8_u (local.get 0)))))");
  auto three = [](int32_t a, int32_t b, int32_t c) {
    return std::vector<Val>{Val::i32(a), Val::i32(b), Val::i32(c)};
  };
  auto out = TrapCode::kOutOfBoundsMemory;
  EXPECT_EQ(call_trap(i, "fill", three(65530, 1, 7)).code, out);
  EXPECT_EQ(call1(i, "at", {Val::i32(65530)}), 0u);
  call(i, "fill", three(65530, 0x1ff, 6));
  EXPECT_EQ(call1(i, "at", {Val::i32(65535)}), 0xffu);
  call(i, "init", three(10, 1, 4));
  EXPECT_EQ(call1(i, "at", {Val::i32(13)}), static_cast<uint32_t>('o'));
  EXPECT_EQ(call_trap(i, "init", three(10, 1, 5)).code, out);
  EXPECT_EQ(call_trap(i, "init", three(65533, 0, 5)).code, out);
  call(i, "copy", three(11, 10, 4));  // overlapping
  EXPECT_EQ(call1(i, "at", {Val::i32(14)}), static_cast<uint32_t>('o'));
  EXPECT_EQ(call1(i, "at", {Val::i32(11)}), static_cast<uint32_t>('e'));
  EXPECT_EQ(call_trap(i, "copy", three(0, 65535, 2)).code, out);
  EXPECT_EQ(call_trap(i, "copy", three(-1, 0, 2)).code, out);
  call(i, "copy", three(65536, 65536, 0));
  EXPECT_EQ(call_trap(i, "copy", three(65537, 0, 0)).code, out);
  call(i, "drop");
  call(i, "drop");
  call(i, "init", three(0, 0, 0));
  EXPECT_EQ(call_trap(i, "init", three(0, 0, 1)).code, out);
}

TEST_P(WasmMemory, bulk_instructions_of_tables) {
  Instance& i = world.make(R"((module (table 6 funcref) (type $t (func (result i32)))
    (elem $e func $a $b)
    (func $a (result i32) i32.const 1) (func $b (result i32) i32.const 2)
    (func (export "init") (param i32 i32 i32)
      (table.init $e (local.get 0) (local.get 1) (local.get 2)))
    (func (export "copy") (param i32 i32 i32)
      (table.copy (local.get 0) (local.get 1) (local.get 2)))
    (func (export "drop") (elem.drop $e))
    (func (export "call") (param i32) (result i32) (call_indirect (type $t) (local.get 0)))))");
  auto three = [](int32_t a, int32_t b, int32_t c) {
    return std::vector<Val>{Val::i32(a), Val::i32(b), Val::i32(c)};
  };
  auto out = TrapCode::kOutOfBoundsTable;
  call(i, "init", three(1, 0, 2));
  EXPECT_EQ(call1(i, "call", {Val::i32(2)}), 2u);
  EXPECT_EQ(call_trap(i, "init", three(5, 0, 2)).code, out);
  EXPECT_EQ(call_trap(i, "call", {Val::i32(5)}).code, TrapCode::kUninitializedElement);
  call(i, "copy", three(2, 1, 2));  // overlapping
  EXPECT_EQ(call1(i, "call", {Val::i32(2)}), 1u);
  EXPECT_EQ(call1(i, "call", {Val::i32(3)}), 2u);
  EXPECT_EQ(call_trap(i, "copy", three(5, 0, 2)).code, out);
  call(i, "drop");
  EXPECT_EQ(call_trap(i, "init", three(0, 0, 1)).code, out);
}

// ---- The class Memory ---------------------------------------------------------------------------

TEST(WasmMemoryClass, guarded_base_never_moves) {
  auto m = Memory::create({1, {}}, kMaxPages, Bounds::kGuarded);
  ASSERT_TRUE(m.ok());
  ASSERT_EQ((*m)->bounds(), Bounds::kGuarded);
  uint8_t* base = (*m)->bytes().data();
  for (uint32_t n = 1; n < 100; ++n)
    EXPECT_EQ((*m)->grow(n), static_cast<int32_t>(n * (n - 1) / 2 + 1));
  EXPECT_EQ((*m)->bytes().data(), base);
}

TEST(WasmMemoryClass, cap_of_the_engine_holds_whatever_the_module_says) {
  for (Bounds bounds : {Bounds::kGuarded, Bounds::kExplicit}) {
    auto m = Memory::create({1, 100}, 4, bounds);
    ASSERT_TRUE(m.ok());
    EXPECT_EQ((*m)->grow(3), 1);
    EXPECT_EQ((*m)->grow(1), -1);
    EXPECT_EQ((*m)->max(), std::optional<uint64_t>(100));
  }
}

TEST(WasmMemoryClass, all_but_the_last_page_can_be_reached_where_they_are_only_reserved) {
  auto m = Memory::create({0, {}}, kMaxPages, Bounds::kGuarded);
  ASSERT_TRUE(m.ok());
  if ((*m)->grow(kMaxPages - 1) == 0) {
    uint64_t size = (uint64_t{1} << 32) - kPageSize;
    EXPECT_EQ((*m)->bytes().size(), size);
    EXPECT_TRUE((*m)->contains(size - 1, 1));
    EXPECT_FALSE((*m)->contains(size, 1));
    (*m)->bytes()[size - 1] = 1;
  }
  EXPECT_EQ((*m)->grow(1), (*m)->pages() == 0 ? 0 : -1) << "that page is the fence";
}

TEST(WasmMemoryClass, whoever_says_that_it_wants_four_gigabytes_gets_them_guarded) {
  for (const Limits& limits : {Limits{kMaxPages, {}}, Limits{1, kMaxPages}}) {
    EXPECT_EQ(bounds_of(limits, kMaxPages, Bounds::kGuarded), Bounds::kUnfenced);
    EXPECT_EQ(bounds_of(limits, kMaxPages - 1, Bounds::kGuarded), Bounds::kGuarded);
    EXPECT_EQ(bounds_of(limits, kMaxPages, Bounds::kExplicit), Bounds::kExplicit);
    auto m = Memory::create(limits, kMaxPages, Bounds::kGuarded);
    if (!m.ok() || (*m)->bounds() == Bounds::kExplicit) {
      GTEST_SKIP() << "SKIPPED: needs 8 GiB of address space";
    }
    const uint32_t pages = (*m)->pages();
    EXPECT_EQ((*m)->grow(kMaxPages - pages), static_cast<int32_t>(pages));
    EXPECT_EQ((*m)->bytes().size(), uint64_t{1} << 32);
    EXPECT_EQ((*m)->grow(1), -1);
  }
}

TEST_P(WasmMemory, all_of_four_gigabytes_is_reached_and_nothing_else) {
  Instance& i = world.make(R"((module (memory 65536)
    (func (export "load8") (param i32) (result i32) (i32.load8_u (local.get 0)))
    (func (export "load") (param i32) (result i64) (i64.load (local.get 0)))
    (func (export "load_far") (param i32) (result i32) (i32.load8_u offset=0xffffffff (local.get 0)))
    (func (export "store") (param i32 i64) (i64.store (local.get 0) (local.get 1)))
    (func (export "before") (param i32) (result i32)
      (i32.load8_u (i32.sub (local.get 0) (i32.const 16))))
    (func (export "both") (param i32) (result i32)
      (i32.add (i32.load8_u (local.get 0)) (i32.load8_u (i32.add (local.get 0) (i32.const 8)))))
    (func (export "fill") (param i32 i32)
      (memory.fill (local.get 0) (i32.const 7) (local.get 1)))
    (func (export "fill8") (param i32) (memory.fill (local.get 0) (i32.const 7) (i32.const 8)))
    (func (export "size") (result i32) (memory.size))
    (func (export "grow") (result i32) (memory.grow (i32.const 1)))))");
  const bool guarded = i.memory()->bounds() == Bounds::kUnfenced;
  EXPECT_TRUE(guarded || GetParam().explicit_bounds);
  const TrapCode out = TrapCode::kOutOfBoundsMemory;
  for (int round = 0; round < 3; ++round) {
    call(i, "store", {Val::i32(-8), Val::i64(0x1122334455667788)});
    EXPECT_EQ(call1(i, "load8", {Val::i32(-1)}), 0x11u);
    EXPECT_EQ(call1(i, "load", {Val::i32(-8)}), 0x1122334455667788u);
    EXPECT_EQ(call_trap(i, "load", {Val::i32(-7)}).code, out);
    EXPECT_EQ(call_trap(i, "load", {Val::i32(-1)}).code, out);
    EXPECT_EQ(call1(i, "load_far", {Val::i32(0)}), 0x11u);
    EXPECT_EQ(call_trap(i, "load_far", {Val::i32(1)}).code, out);
    // Below zero is the last page.
    EXPECT_EQ(call1(i, "before", {Val::i32(8)}), 0x88u);
    EXPECT_EQ(call1(i, "before", {Val::i32(15)}), 0x11u);
    // Above the last page is the first one: the sum has 32 bits.
    call(i, "store", {Val::i32(0), Val::i64(3)});
    EXPECT_EQ(call1(i, "both", {Val::i32(-8)}), 0x88u + 3u);
    call(i, "fill8", {Val::i32(-8)});
    EXPECT_EQ(call1(i, "load8", {Val::i32(-1)}), 7u);
    EXPECT_EQ(call_trap(i, "fill8", {Val::i32(-7)}).code, out);
    call(i, "fill", {Val::i32(-40), Val::i32(40)});
    EXPECT_EQ(call_trap(i, "fill", {Val::i32(-40), Val::i32(41)}).code, out);
    EXPECT_EQ(call1(i, "load8", {Val::i32(0)}), 3u) << "filled around";
  }
  EXPECT_EQ(call1(i, "size"), 65536u);
  EXPECT_EQ(call1(i, "grow"), 0xffffffffu);
}

// Runs `body` in a child with `limit` bytes of address space; returns its exit code.
template <typename F>
int with_address_space(uint64_t limit, F body) {
  pid_t child = fork();
  if (child == 0) {
    rlimit r{limit, limit};
    setrlimit(RLIMIT_AS, &r);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

// A limit below a sanitizer's shadow memory would end the process.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsBreakTheTool = true;
#else
constexpr bool kLimitsBreakTheTool = false;
#endif

TEST(WasmMemoryClass, refused_reservation_falls_back_to_bounds_in_code) {
  if (kLimitsBreakTheTool)
    GTEST_SKIP()
        << "SKIPPED: needs a build without sanitizer: RLIMIT_AS is what is tested, and a sanitizer"
           " reserves terabytes itself";
  int code = with_address_space(uint64_t{6} << 30, [] {
    World world;
    Module& m = world.load(kAccesses);
    Instantiation made = world.store().instantiate(m, world.linker());
    if (!made.ok()) return 1;
    Instance& i = *made.instance;
    if (i.memory()->bounds() != Bounds::kExplicit) return 2;
    auto result = [&](const char* name, std::vector<Val> args) { return *i.invoke(name, args); };
    if (result("load", {Val::i32(65529)}).trap.code != TrapCode::kOutOfBoundsMemory) return 3;
    if (!result("store", {Val::i32(65528), Val::i64(7)}).ok()) return 4;
    if (result("grow", {Val::i32(4)}).results[0].bits != 1) return 5;
    if (result("load", {Val::i32(65528)}).results[0].bits != 7) return 6;
    if (!result("store", {Val::i32(5 * 65536 - 8), Val::i64(7)}).ok()) return 7;
    return 0;
  });
  EXPECT_EQ(code, 0);
}

TEST(WasmMemoryClass, growth_that_the_system_refuses_gives_minus_one) {
  if (kLimitsBreakTheTool)
    GTEST_SKIP()
        << "SKIPPED: needs a build without sanitizer: RLIMIT_AS is what is tested, and a sanitizer"
           " reserves terabytes itself";
  int code = with_address_space(uint64_t{1} << 30, [] {
    auto m = Memory::create({1, {}}, kMaxPages, Bounds::kGuarded);
    if (!m.ok() || (*m)->bounds() != Bounds::kExplicit) return 1;
    (*m)->bytes()[5] = 5;
    if ((*m)->grow(60000) != -1) return 2;
    if ((*m)->pages() != 1 || (*m)->bytes()[5] != 5) return 3;
    return (*m)->grow(1) == 1 ? 0 : 4;
  });
  EXPECT_EQ(code, 0);
}

TEST(WasmMemoryClass, one_module_may_serve_both_ways_of_guarding_at_once) {
  World world;
  Module& m = world.load(R"((module (import "h" "m" (memory 1))
    (func (export "f") (param i32) (result i32) (i32.load (local.get 0)))))");
  auto explicit_one = Memory::create({1, {}}, kMaxPages, Bounds::kExplicit);
  ASSERT_TRUE(explicit_one.ok());
  (*explicit_one)->bytes()[0] = 1;
  Linker other;
  other.define("h", "m", explicit_one->get());
  Memory* guarded = *world.store().create_memory({1, {}});
  guarded->bytes()[0] = 2;
  world.linker().define("h", "m", guarded);
  Instance& a = *world.store().instantiate(m, other).instance;
  Instance& b = world.make(m);
  EXPECT_EQ(call1(a, "f", {Val::i32(0)}), 1u);
  EXPECT_EQ(call1(b, "f", {Val::i32(0)}), 2u);
  EXPECT_NE(a.function(0).entry, b.function(0).entry);
  EXPECT_EQ(call_trap(a, "f", {Val::i32(65533)}).code, TrapCode::kOutOfBoundsMemory);
  EXPECT_EQ(call_trap(b, "f", {Val::i32(65533)}).code, TrapCode::kOutOfBoundsMemory);
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_memory_test
