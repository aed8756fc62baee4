// Lengths of memory.copy and memory.fill: their observation, and code specialized on them.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/support/wasm_interpreter.h"
#include "tests/support/wasm_world.h"
#include "uptier/profile_query.h"

namespace uptier::wasm::test::wasm_bulk_test {
namespace {

// moves(at, rounds): reads `rounds` lengths from address `at`, a word each; copies that many bytes
// from 4096 to 8192 and fills that many at 12288. Returns a hash of bytes that were written. fixed:
// its lengths are constants, so there is nothing to observe.
constexpr const char* kText = R"((module (memory (export "m") 1)
  (func (export "set") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
  (func (export "paint") (param i32 i32) (i32.store8 (local.get 0) (local.get 1)))
  (func (export "byte") (param i32) (result i32) (i32.load8_u (local.get 0)))
  (func $moves (export "moves") (param $at i32) (param $rounds i32) (result i32)
    (local $sum i32) (local $n i32)
    (loop $again
      (local.set $n (i32.load (local.get $at)))
      (memory.copy (i32.const 8192) (i32.const 4096) (local.get $n))
      (memory.fill (i32.const 12288) (local.get $rounds) (i32.add (local.get $n) (i32.const 1)))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31))
        (i32.add (i32.load8_u offset=12287 (local.get $n))
          (i32.load8_u offset=8191 (local.get $n)))))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $again (local.tee $rounds (i32.sub (local.get $rounds) (i32.const 1)))))
    (local.get $sum))
  (func $fixed (export "fixed")
    (memory.fill (i32.const 0) (i32.const 1) (i32.const 8))
    (memory.copy (i32.const 64) (i32.const 0) (i32.const 200)))))";

// Returns the lengths of a run, not all of them small.
std::vector<uint32_t> lengths(uint32_t seed, uint32_t count) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < count; ++i) all.push_back(i % 3 == 0 ? seed * 7 % 90 + i : 16);
  return all;
}

void set_lengths(Instance& i, const std::vector<uint32_t>& all) {
  uint32_t at = 16384;
  for (uint32_t n : all) {
    call(i, "set", {Val::i32(static_cast<int32_t>(at)), Val::i32(static_cast<int32_t>(n))});
    at += 4;
  }
}

// Writes the bytes to copy.
void fill_source(Instance& i) {
  auto bytes = i.memory()->bytes();
  for (uint32_t n = 0; n < 4096; ++n) bytes[4096 + n] = static_cast<uint8_t>(37 * n + 11);
}

uint32_t moves(Instance& i, const std::vector<uint32_t>& all) {
  set_lengths(i, all);
  return static_cast<uint32_t>(
      call1(i, "moves", {Val::i32(16384), Val::i32(static_cast<int32_t>(all.size()))}));
}

uint32_t expected(const std::vector<uint32_t>& all) {
  std::vector<uint8_t> copied(4096), filled(4096);
  uint32_t sum = 0, rounds = static_cast<uint32_t>(all.size());
  for (uint32_t n : all) {
    for (uint32_t k = 0; k < n; ++k) copied[k] = static_cast<uint8_t>(37 * k + 11);
    std::memset(filled.data(), static_cast<int>(rounds & 0xff), n + 1);
    // With length 0, the byte before the destination is the last byte of the source area.
    uint8_t last = n == 0 ? static_cast<uint8_t>(37 * 4095 + 11) : copied[n - 1];
    sum = sum * 31 + (n == 0 ? 0 : filled[n - 1]) + last;
    --rounds;
  }
  return sum;
}

// ---- Observation ------------------------------------------------------------------------------

struct Seen : jit::InterpretObserver {
  void probe(MethodId m, const jit::Inst& probe, uint64_t seen) override {
    if (jit::probe_kind(probe) != ProbeKind::kValue || (probe.flags & jit::kProbeOwn) != 0) return;
    values[{m.index(), probe.aux}].push_back(static_cast<int64_t>(seen));
  }
  std::map<std::pair<uint32_t, SiteId>, std::vector<int64_t>> values;
};

// Returns the entries of a table that has room for all values.
std::map<int64_t, uint64_t> counted(const std::vector<int64_t>& values) {
  std::map<int64_t, uint64_t> counts;
  for (int64_t v : values) ++counts[v];
  return counts;
}

TEST(WasmBulk, lengths_are_counted_as_the_interpreter_sees_them) {
  const std::vector<uint32_t> all = {16, 3, 16, 16, 0, 64, 16, 3};
  Seen oracle;
  InterpreterRuntime interpreter;
  interpreter.observer = &oracle;
  Options o;
  for (auto [name, value] : {std::pair{"tier", "instrumented"},
                             {"interval", "1"},
                             {"workers", "0"},
                             {"adaptive", "off"}}) {
    ASSERT_TRUE(o.set(name, value).ok()) << name;
  }
  auto runtime = Runtime::create(o);
  ASSERT_TRUE(runtime.ok());
  const Bytes bytes = assemble(kText);
  auto run = [&](Runtime& r) {
    EngineOptions options;
    options.explicit_bounds = true;  // the interpreter has no guard pages
    Engine engine(r, options);
    auto module = Module::load(engine, bytes);
    ASSERT_TRUE(module.ok());
    Store store(engine);
    Linker linker;
    Instantiation made = store.instantiate(**module, linker);
    ASSERT_TRUE(made.ok());
    fill_source(*made.instance);
    for (int n = 0; n < 5; ++n) EXPECT_EQ(moves(*made.instance, all), expected(all));
    call(*made.instance, "fixed");
    if (&r != runtime->get()) return;
    r.flush();
    const Profile p = r.profile();
    size_t sites = 0;
    for (const auto& [key, m] : p.methods) {
      if (m.name != "moves") continue;
      for (const auto& [place, values] : oracle.values) {
        auto answer = query(m, SlotKind::kValue, place.second);
        ASSERT_TRUE(answer) << place.second;
        const auto& got = std::get<ValuesAnswer>(answer->what);
        std::map<int64_t, uint64_t> entries;
        for (const auto& v : got.values) entries[v.value] = v.count;
        EXPECT_EQ(entries, counted(values)) << place.second;
        EXPECT_EQ(got.other, 0u);
        EXPECT_EQ(got.range.count, values.size());
        EXPECT_EQ(got.range.min, std::ranges::min(values));
        EXPECT_EQ(got.range.max, std::ranges::max(values));
        ++sites;
      }
    }
    EXPECT_EQ(sites, 2u);
  };
  run(interpreter);
  ASSERT_EQ(oracle.values.size(), 2u) << "constant lengths need no probe";
  for (const auto& [place, values] : oracle.values) EXPECT_EQ(values.size(), 5 * all.size());
  run(**runtime);
}

// ---- Code for one length ----------------------------------------------------------------------

class WasmBulkModes : public WasmModes {};
UPTIER_IN_ALL_MODES(WasmBulkModes);

TEST_P(WasmBulkModes, lengths_of_all_kinds_give_one_answer) {
  Instance& i = world.make(kText);
  fill_source(i);
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::vector<uint32_t> all = lengths(seed, seed % 20 + 1);
    ASSERT_EQ(moves(i, all), expected(all)) << seed;
  }
  call(i, "fixed");
  for (int32_t at : {0, 7, 64, 71}) { EXPECT_EQ(call1(i, "byte", {Val::i32(at)}), 1u) << at; }
}

Options guessing(const char* stress) {
  Options o;
  for (auto [name, value] : {std::pair{"policy", "always"},
                             {"workers", "0"},
                             {"interval", "2"},
                             {"adaptive", "off"},
                             {"measure_rates", "off"},
                             {"value_samples", "8"},
                             {"trials", "off"},
                             {"stress", stress}}) {
    EXPECT_TRUE(o.set(name, value).ok()) << name;
  }
  return o;
}

bool is_guessed(Runtime& r, std::string_view reason) {
  const Report report = r.report();
  return std::ranges::any_of(report.decisions, [&](const DecisionRecord& d) {
    return d.action == "specialize" && d.reason.find(reason) != std::string::npos;
  });
}

TEST(WasmBulk, a_length_that_is_nearly_always_the_same_is_guessed_right_and_wrong) {
  for (const char* stress : {"", "values=all", "values=all,guard=all,osr=every:3"}) {
    auto engine = Engine::create(guessing(stress));
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    ThreadScope scope((*engine)->runtime());  // otherwise each call would come from a new thread
    auto module = Module::load(**engine, assemble(kText));
    ASSERT_TRUE(module.ok());
    Store store(**engine);
    Linker linker;
    Instantiation made = store.instantiate(**module, linker);
    ASSERT_TRUE(made.ok());
    Instance& i = *made.instance;
    fill_source(i);
    const std::vector<uint32_t> same(20, 16);
    for (int n = 0; n < 200; ++n) ASSERT_EQ(moves(i, same), expected(same));
    if (std::string_view(stress).empty()) {
      EXPECT_TRUE(is_guessed((*engine)->runtime(), "is 16 in 100.0 %"))
          << (*engine)->runtime().report().text();
      EXPECT_TRUE(is_guessed((*engine)->runtime(), "is 17 in 100.0 %"));
    }
    for (uint32_t seed = 0; seed < 60; ++seed) {
      std::vector<uint32_t> all = lengths(seed, 20);
      ASSERT_EQ(moves(i, all), expected(all)) << seed;
    }
    for (uint32_t n : {65536u - 8191, UINT32_MAX}) {
      set_lengths(i, {16, n});
      EXPECT_EQ(call_trap(i, "moves", {Val::i32(16384), Val::i32(2)}).code,
                TrapCode::kOutOfBoundsMemory);
    }
  }
}

}  // namespace
}  // namespace uptier::wasm::test::wasm_bulk_test
