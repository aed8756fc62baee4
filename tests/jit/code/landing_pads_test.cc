// Every target of an indirect call or jump begins with ENDBR64; without the option, code does not
// change.
#include <gtest/gtest.h>

#include <cstring>

#include "jit/code/value_guard.h"
#include "tests/support/baseline_module.h"
#include "tests/support/hardened.h"
#include "tests/support/opt_harness.h"

namespace uptier::test::landing_pads_test {
namespace {

constexpr uint8_t kPad[] = {0xf3, 0x0f, 0x1e, 0xfa};

bool lands(const void* at) { return std::memcmp(at, kPad, sizeof kPad) == 0; }

const jit::Hardening kPads{.landing_pads = true};

constexpr const char* kSwitch = R"(
func @f(i32) -> i32 {
b0(v0: i32):
  switch v0, [b1, b2, b3, b4, b5, b6], b7
b1:
  v1 = const.i32 10
  return v1
b2:
  v2 = const.i32 20
  return v2
b3:
  v3 = const.i32 30
  return v3
b4:
  v4 = const.i32 40
  return v4
b5:
  v5 = const.i32 50
  return v5
b6:
  v6 = const.i32 60
  return v6
b7:
  v7 = const.i32 70
  return v7
}
)";

// Counts the indirect jumps in code: returns those that require a landing pad and sets `untracked`
// to those with a notrack prefix.
size_t tracked_jumps(const jit::Code& code, size_t* untracked) {
  std::string text = disassemble(static_cast<const uint8_t*>(code.at(0)), code.hot_size());
  size_t tracked = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("jmp r") == std::string::npos) continue;
    ++(line.find("notrack") != std::string::npos ? *untracked : tracked);
  }
  return tracked;
}

TEST(LandingPads, all_that_callers_hold_begins_with_one) {
  Hardened on(kPads);
  CodeMachine m;
  jit::Module module = *jit::parse_module(kSwitch, {"switch", {}});
  BaselineModule baseline(m, module, BaselineModule::Use::kPlain);
  OptimizedModule optimized(m, module);
  EXPECT_TRUE(lands(baseline.code(0, Copy::kPlain).entry()));
  EXPECT_TRUE(lands(baseline.code(0, Copy::kInstrumented).entry()));
  EXPECT_TRUE(lands(optimized.codes()[0]->entry()));
  for (uint32_t n = 0; n < 3; ++n) {
    EXPECT_TRUE(lands(m.stubs->stub(MethodId(n))));
    EXPECT_TRUE(lands(m.stubs->tail(MethodId(n))));
    EXPECT_TRUE(lands(m.stubs->trial(MethodId(n))));
  }
  EXPECT_TRUE(lands(reinterpret_cast<const void*>(m.routines->invoke())));
  EXPECT_TRUE(lands(reinterpret_cast<const void*>(m.routines->loop_pair())));
  EXPECT_TRUE(lands(m.routines->gone()));
  EXPECT_TRUE(lands(m.routines->trap_exit_at_entry()));
  EXPECT_TRUE(lands(m.routines->entry_slow()));
  for (uint32_t n = 0; n < jit::kProbeRoutines; ++n) {
    EXPECT_TRUE(lands(m.routines->probe(static_cast<jit::ProbeRoutine>(n))));
  }
  jit::GuardWords words;
  jit::ParamValue value{0, 5};
  jit::ValueGuardRequest r{.method = MethodId(0),
                           .signature = module.functions[0].signature(),
                           .values = {&value, 1},
                           .special = m.stubs->stub(MethodId(0)),
                           .general = m.stubs->stub(MethodId(0)),
                           .told = m.routines->entry_slow(),
                           .words = &words};
  auto guard = jit::make_value_guard(*m.space, r);
  ASSERT_TRUE(guard.ok()) << guard.error().message;
  EXPECT_TRUE(lands(guard->counted));
  EXPECT_TRUE(lands(guard->quiet));
}

TEST(LandingPads, jumps_through_tables_ask_for_none) {
  jit::Module module = *jit::parse_module(kSwitch, {"switch", {}});
  size_t untracked = 0;
  {
    Hardened on(kPads);
    CodeMachine m;
    BaselineModule baseline(m, module, BaselineModule::Use::kPlain);
    OptimizedModule optimized(m, module);
    EXPECT_EQ(tracked_jumps(baseline.code(0, Copy::kPlain), &untracked), 0u);
    EXPECT_EQ(tracked_jumps(*optimized.codes()[0], &untracked), 0u);
    EXPECT_EQ(untracked, 2u);
    for (uint64_t n = 0; n < 8; ++n) {
      EXPECT_EQ(m.run(optimized.entry(MethodId(0)), module.functions[0].signature(), {n}).bits,
                std::min<uint64_t>(10 * n + 10, 70));
    }
  }
  Hardened off({});
  CodeMachine m;
  BaselineModule baseline(m, module, BaselineModule::Use::kPlain);
  untracked = 0;
  EXPECT_EQ(tracked_jumps(baseline.code(0, Copy::kPlain), &untracked), 1u);
  EXPECT_EQ(untracked, 0u);
}

TEST(LandingPads, none_is_there_without_the_option) {
  Hardened off({});
  CodeMachine m;
  jit::Module module = *jit::parse_module(kSwitch, {"switch", {}});
  BaselineModule baseline(m, module, BaselineModule::Use::kPlain);
  OptimizedModule optimized(m, module);
  auto none = [](const void* at, size_t bytes) {
    std::string_view text(static_cast<const char*>(at), bytes);
    return text.find(std::string_view(reinterpret_cast<const char*>(kPad), 4)) ==
           std::string_view::npos;
  };
  for (const jit::Code* c : std::initializer_list<const jit::Code*>{
           &baseline.code(0, Copy::kPlain), &baseline.code(0, Copy::kInstrumented),
           optimized.codes()[0].get()}) {
    EXPECT_TRUE(none(c->at(0), c->hot_size()));
  }
  EXPECT_TRUE(none(m.stubs->stub(MethodId(0)), 64 * jit::StubTable::kStubBytes));
}

}  // namespace
}  // namespace uptier::test::landing_pads_test
