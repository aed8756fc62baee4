// Probes other than those of control flow: instrumented copies count the values that the
// interpreter saw.
#include "tests/support/site_probe.h"

namespace uptier::test::site_probe_test {
namespace {

// All argument registers are in use at the indirect call.
const char* kTargets = R"(
func @one(i64, i64, i64, i64, i64, i64, f64) -> i64 {
b0(v0: i64, v1: i64, v2: i64, v3: i64, v4: i64, v5: i64, v6: f64):
  v7 = sub.i64 v0, v1
  v8 = mul.i64 v2, v3
  v9 = xor.i64 v4, v5
  v10 = trunc_sat_s.i64 v6
  v11 = add.i64 v7, v8
  v12 = add.i64 v9, v10
  v13 = add.i64 v11, v12
  return v13
}
func @two(i64, i64, i64, i64, i64, i64, f64) -> i64 {
b0(v0: i64, v1: i64, v2: i64, v3: i64, v4: i64, v5: i64, v6: f64):
  v7 = sub.i64 v5, v4
  return v7
}
func @caller(ref, i64, f64) -> i64 {
b0(v0: ref, v1: i64, v2: f64):
  probe call_target v0
  v3 = const.i64 3
  v4 = add.i64 v1, v3
  v5 = call_indirect.(i64, i64, i64, i64, i64, i64, f64)->i64 v0(v1, v4, v3, v1, v4, v3, v2)
  v6 = add.i64 v5, v4
  return v6
}
)";

TEST(SiteProbes, targets_of_indirect_calls) {
  jit::Module module = parse(kTargets);
  Probed p(module);
  for (uint64_t i = 0; i < 100; ++i)
    p.run(2, {i % 7 == 3, i, std::bit_cast<uint64_t>(i * 1.5)}, {0});
  EXPECT_EQ(p.counts(2, 0), (SiteCounts{{0}, {{0, 86}, {1, 14}}}));
  EXPECT_EQ(p.counts(2, 1), (SiteCounts{{0}, {{0, 86}, {1, 14}}}));
  EXPECT_EQ(p.check(), 200u);
}

TEST(SiteProbes, every_kind_on_every_type) {
  jit::Module module = parse(kEveryKind);
  Probed p(module);
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    std::vector<uint64_t> args;
    for (Type t : module.functions[0].signature().params) {
      args.push_back(t == Type::kRef ? random.below(40) : random_bits(t, random));
    }
    p.run(0, args);
  }
  EXPECT_GT(p.check(), 10'000u);
  p.check_log();
}

TEST(SiteProbes, few_values_are_exact_in_any_order) {
  jit::Module module = parse(kEveryKind);
  for (bool recent : {false, true}) {
    SiteProbeRequest r = everything();
    r.recent = recent;
    Probed p(module, r);
    for (uint64_t i = 0; i < 400; ++i) {
      p.run(0, {uint32_t(-int32_t(i % 3)), i % 16, std::bit_cast<uint32_t>(0.5f * float(i % 2)),
                std::bit_cast<uint64_t>(1.0), i * i % 11});
    }
    p.check();
  }
}

TEST(SiteProbes, only_what_was_asked_for_has_words) {
  jit::Module module = parse(std::string(kTargets) + kEveryKind);
  jit::ProbePlan none;
  plan_sites(module.functions[3], {}, none);
  EXPECT_EQ(none.bytes, 0u);
  EXPECT_TRUE(none.loops.empty());
  jit::ProbePlan calls;
  calls.bytes = 20;
  plan_sites(module.functions[2], {.call_targets = true, .top = 3}, calls);
  EXPECT_EQ(calls.sites[0].offset, 24u);
  EXPECT_EQ(calls.sites[1].offset, jit::ProbePlan::kNone);
  EXPECT_EQ(calls.bytes, 24 + 8 * (3 + 2 * 3 + 2u));
  EXPECT_EQ(site_counts(calls, 1, {}), SiteCounts{});
  jit::ProbePlan shared;
  shared.counters = CounterMode::kInterlocked;
  EXPECT_FALSE(plan_sites(module.functions[2], everything(), shared));
  EXPECT_EQ(shared.bytes, 0u);
}

TEST(SiteProbes, a_thread_without_ring_and_timer_counts_and_loses) {
  jit::Module module = parse(kEveryKind);
  Probed p(module);
  p.machine.thread.context().log = nullptr;
  p.machine.thread.context().loops = nullptr;
  p.run(0, {1, 2, 3, 4, 5});
  uint32_t logs = 0;
  for (uint32_t i = 0; i < p.compiled.plan(0).sites.size(); ++i) {
    if (p.compiled.plan(0).sites[i].kind != ProbeKind::kLog) continue;
    EXPECT_EQ(p.counts(0, i).words, (std::vector<uint64_t>{1, 1}));
    ++logs;
  }
  EXPECT_EQ(logs, 3u);
  EXPECT_EQ(p.loop(0, 0)[0], 1u);
  EXPECT_EQ(p.loop(0, 0)[2], 0u);
}

// Values that only probes need make the instrumented frame larger than the plain one.
TEST(SiteProbes, a_larger_instrumented_frame_is_taken_on_arrival) {
  std::string text = "func @f(i64) -> i64 {\nb0(v0: i64):\n  v1 = const.i64 1\n  jump b1(v0, v0)\n";
  text += "b1(v2: i64, v3: i64):\n  loop_header 0 pc=0 []\n  v4 = sub.i64 v2, v1\n";
  for (int i = 0; i < 60; ++i) {
    text += "  v" + std::to_string(100 + i) + " = mul.i64 v2, v" +
            std::to_string(i == 0 ? 3 : 99 + i) + "\n";
  }
  for (int i = 0; i < 60; ++i) text += "  probe value v" + std::to_string(100 + i) + "\n";
  text += "  v6 = add.i64 v3, v4\n  branch v4, b1(v4, v6), b2\nb2:\n  return v6\n}\n";
  std::string fixed = text;
  size_t at = fixed.find("  branch v4");
  fixed.insert(at, "  v7 = eqz.i64 v4\n");
  fixed.replace(fixed.find("branch v4, b1(v4, v6), b2"), 25, "branch v7, b2, b1(v4, v6)");
  jit::Module module = parse(fixed);
  for (Use use : {Use::kInstrumented, Use::kToAndFro}) {
    Probed p(module, everything(), use);
    uint32_t plain = p.compiled.code(0, Copy::kPlain).tables().frame_size;
    EXPECT_GT(p.compiled.code(0, Copy::kInstrumented).tables().frame_size, plain);
    for (uint64_t n : {1, 2, 50, 200}) p.run(0, {n});
    if (use == Use::kInstrumented) p.check();
  }
}

// ---- Random programs ----------------------------------------------------------------------------

class RandomSites {
 public:
  explicit RandomSites(uint64_t seed)
      : seed_(seed),
        module_(random_module(seed, {.functions = 3, .statements = 150, .hosts = false})) {}

  uint64_t compare(Use use, bool recent) {
    Scratch scratch;
    SiteProbeRequest r = everything();
    r.recent = recent;
    Probed p(module_, r, use);
    uint32_t last = static_cast<uint32_t>(module_.functions.size() - 1);
    const Signature& s = module_.functions[last].signature();
    for (uint64_t round = 0; round < 3; ++round) {
      Random random(seed_ * 1000 + round);
      auto args = random_arguments(s, scratch, random);
      jit::InterpretOptions options;
      options.memory = {{scratch.base(), Scratch::kSize, true}};
      options.observer = &p.oracle;
      scratch.fill();
      jit::Interpreter interpreter(module_, options);
      auto expected = interpreter.run(MethodId(last), args);
      p.oracle.add_blocks(interpreter, module_);
      std::string memory = scratch.bytes();
      scratch.fill();
      Ran got = p.compiled.run(MethodId(last), args);
      EXPECT_EQ(got.trap, expected.trap) << "seed " << seed_;
      if (got.trap == TrapCode::kNone) {
        EXPECT_TRUE(same_value(s.result, got.bits, expected.bits)) << "seed " << seed_;
      }
      EXPECT_EQ(memory, scratch.bytes()) << "seed " << seed_;
    }
    if (use == Use::kToAndFro) return 0;
    uint64_t events = p.check();
    if (p.ring->lost() == 0) p.check_log();
    return events;
  }

 private:
  uint64_t seed_;
  jit::Module module_;
};

TEST(SiteProbes, random_programs_count_what_the_interpreter_sees) {
  uint64_t events = 0;
  for (uint64_t seed = 1; seed <= 80 && !::testing::Test::HasFailure(); ++seed) {
    RandomSites r(seed);
    events += r.compare(Use::kInstrumented, seed % 2 == 0);
    r.compare(Use::kToAndFro, false);
  }
  EXPECT_GT(events, 1'000u);
}

TEST(SiteProbes, plain_copies_are_the_same_with_and_without_a_plan) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    jit::Module module = random_module(seed, {.functions = 1, .hosts = false});
    CodeMachine a, b;
    BaselineModule with(a, module, Use::kPlain, planner(everything()));
    BaselineModule without(b, module, Use::kPlain);
    const jit::Code &x = with.code(0, Copy::kPlain), &y = without.code(0, Copy::kPlain);
    EXPECT_EQ(x.tables(), y.tables());
    ASSERT_EQ(x.size(), y.size());
    EXPECT_EQ(disassemble(x.base(), x.size()).size(), disassemble(y.base(), y.size()).size());
  }
}

// ---- Registers and instructions -----------------------------------------------------------------

struct Registers {
  uint64_t gp[16];
  uint64_t xmm[16][2];
};

// Emits void(const Registers* in, Registers* out, uint64_t* slab), which makes a probe's call with
// every register live.
jit::CodeSpan emit_torture(CodeMachine& m, jit::ProbeRoutine routine) {
  using namespace asmjit::x86;
  jit::CodeBuffer b(*m.space);
  auto& a = b.assembler();
  for (auto r : {rbx, rbp, r12, r13, r14, r15, rsi, rdx}) a.push(r);  // slab on top, then out
  for (uint32_t i = 0; i < 16; ++i) a.movups(asmjit::x86::xmm(i), ptr(rdi, int(128 + 16 * i)));
  for (uint32_t i = 0; i < 16; ++i) {
    if (i != 4 && i != 7 && i != 11) a.mov(gpq(i), ptr(rdi, int(8 * i)));
  }
  a.mov(rdi, ptr(rdi, 8 * 7));
  a.mov(r11, ptr(rsp));
  if (jit::probe_words(routine) == 4) a.push(asmjit::imm(77));
  a.push(asmjit::imm(8));
  a.push(rax);
  a.push(asmjit::imm(0));
  b.call_address(m.routines->probe(routine));
  a.mov(r11, ptr(rsp, 8));
  for (uint32_t i = 0; i < 16; ++i) {
    if (i != 4 && i != 11) a.mov(ptr(r11, int(8 * i)), gpq(i));
  }
  for (uint32_t i = 0; i < 16; ++i) a.movups(ptr(r11, int(128 + 16 * i)), asmjit::x86::xmm(i));
  a.add(rsp, asmjit::imm(16));
  for (auto r : {r15, r14, r13, r12, rbp, rbx}) a.pop(r);
  a.ret();
  return CodeMachine::take(b.publish_bare(*m.space));
}

TEST(ProbeRoutines, keep_every_register_but_r11) {
  CodeMachine m;
  auto ring = CodeMachine::take(sampler::LogRing::create(16));
  sampler::LoopTimer timer;
  m.thread.context().log = ring.get();
  m.thread.context().loops = &timer;
  for (uint32_t n = 0; n < jit::kProbeRoutines; ++n) {
    auto routine = static_cast<jit::ProbeRoutine>(n);
    jit::CodeSpan code = emit_torture(m, routine);
    auto call = reinterpret_cast<void (*)(const Registers*, Registers*, uint64_t*)>(code.data());
    uint64_t slab[64] = {};
    Random random(n);
    for (int i = 0; i < 2000; ++i) {
      Registers in, out;
      for (uint64_t& r : in.gp) r = random.next();
      in.gp[0] = 1'000'000 - random.below(200);  // the value, or the frame
      for (auto& x : in.xmm) x[0] = random.next(), x[1] = random.next();
      out = in;
      --slab[sampler::kLoopState];  // as compiled code does before it enters a loop
      if (i % 4 == 0) timer.set_clock(sampler::LoopTimer::CpuClock::of_thread(1), 0);
      call(&in, &out, slab);
      ASSERT_EQ(std::memcmp(&in, &out, sizeof in), 0) << "routine " << n << " call " << i;
    }
  }
  EXPECT_EQ(ring->pushed(), 2000u);
  timer.unwind(UINT64_MAX);
}

// The instruction budget of each fast path: a change here changes what sampling costs.
TEST(SiteProbes, fast_paths_are_what_they_are_thought_to_be) {
  jit::Module module = parse(kTargets);
  CodeMachine m;
  SiteProbeRequest r{.call_targets = true};
  BaselineModule compiled(m, module, Use::kInstrumented, planner(r, false));
  EXPECT_EQ(listing_around(compiled.code(2, Copy::kInstrumented), "call rax", 4),
            R"(mov r11, qword ptr [rbp-0x08]
cmp qword ptr [r11+0x18], rax
jnz *
inc qword ptr [r11+0x20]
)");
}

}  // namespace
}  // namespace uptier::test::site_probe_test
