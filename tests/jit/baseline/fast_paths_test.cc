// Instruction budgets of a call: the stub, the slow path of a sample, the probe of a call's target.
// A change here changes what counting and sampling cost. For checks and counters see
// flow_plan_test.cc.
#include "tests/support/golden.h"
#include "tests/support/site_probe.h"

namespace uptier::test::fast_paths_test {
namespace {

constexpr MethodId kMethod{3};

std::string counted(const std::string& what, const std::string& listing) {
  auto n = std::count(listing.begin(), listing.end(), '\n');
  std::string out = what + ": " + std::to_string(n) + "\n";
  for (const std::string& line : lines_of(listing)) out += "  " + line + "\n";
  return out;
}

// Returns the listing up to and including the line that begins with `last`.
std::string listing_up_to(const void* code, size_t bytes, const std::string& last) {
  std::string text = disassemble(static_cast<const uint8_t*>(code), bytes), out;
  for (const std::string& line : lines_of(text)) {
    out += line + "\n";
    if (line.compare(0, last.size(), last) == 0) return out;
  }
  return out + "(no " + last + ")\n";
}

std::string stub_listing(jit::StubTable::Countdown countdown) {
  CodeMachine m(countdown);
  EXPECT_TRUE(m.stubs->ensure(kMethod).ok());
  return listing_up_to(m.stubs->stub(kMethod), jit::StubTable::kStubBytes, "jmp qword");
}

// The listing shows calls of these addresses; nothing here calls them.
template <typename F>
F address(uintptr_t a) {
  return reinterpret_cast<F>(a);
}

// Returns the instructions of a plain sample in execution order; only the slow half is left out.
std::string sample_path(const std::string& all) {
  size_t to_end = all.find("jnz *\n") + 6;
  size_t slow = all.find("movaps xmm7, ");
  size_t done = all.find('\n', slow) + 1;
  return all.substr(0, to_end) + all.substr(done);
}

TEST(FastPaths, of_calls_keep_their_budgets) {
  std::string text =
      counted("stub, per thread", stub_listing(jit::StubTable::Countdown::kPerThread)) +
      counted("stub, exact", stub_listing(jit::StubTable::Countdown::kShared));

  CodeMachine m;
  EXPECT_TRUE(m.stubs->ensure(kMethod).ok());
  text += counted("stub's tail", listing_up_to(m.stubs->tail(kMethod), 16, "jmp"));
  auto routines = CodeMachine::take(jit::Routines::create(
      *m.space, address<jit::EntrySlow>(0x111111111111), address<void*>(0x222222222222),
      address<jit::EntryFast>(0x333333333333), address<void*>(0x444444444444), {}, {}, nullptr,
      nullptr,
      {address<jit::LoopSlow>(0x555555555555), address<jit::LoopSlow>(0x666666666666),
       address<void*>(0x222222222222), address<void*>(0x777777777777),
       address<jit::LoopBegin>(0x888888888888), address<void*>(0x444444444444)}));
  std::string slow = listing_up_to(routines.entry_slow(), 400, "jmp r11");
  text += counted("entry_slow, all", slow);
  text += counted("entry_slow, of a plain sample", sample_path(slow));
  text += counted("loop_plain, of a frame that joins a burst",
                  listing_up_to(routines.loop_plain(), 400, "ret"));
  text += counted("loop_plain, all", listing_up_to(routines.loop_plain(), 400, "jmp rax"));
  text += counted("loop_instrumented, of a burst that ends",
                  listing_up_to(routines.loop_instrumented(), 400, "ret"));
  text += counted("loop_instrumented, all",
                  listing_up_to(routines.loop_instrumented(), 400, "jmp rax"));

  jit::Module module = parse(R"(
func @callee(i64) -> i64 {
b0(v0: i64):
  return v0
}
func @caller(ref, i64) -> i64 {
b0(v0: ref, v1: i64):
  probe call_target v0
  v2 = call_indirect.(i64)->i64 v0(v1)
  return v2
}
)");
  jit::SiteProbeRequest r{.call_targets = true};
  BaselineModule compiled(m, module, Use::kInstrumented, planner(r));
  text += counted("probe of a call's target, the first in its table",
                  listing_around(compiled.code(1, Copy::kInstrumented), "call rax", 4));
  expect_golden("fast_paths_calls", text);
}

}  // namespace
}  // namespace uptier::test::fast_paths_test
