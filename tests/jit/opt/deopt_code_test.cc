// Deoptimization from optimized into baseline code: wherever the code exits, the answer is the
// interpreter's.
#include "jit/analysis/deopt_targets.h"
#include "jit/code/leave.h"
#include "tests/support/compare.h"
#include "tests/support/golden.h"
#include "tests/support/inline_harness.h"
#include "tests/support/opt_harness.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::deopt_code_test {
namespace {

// All functions of a module, as optimized code that asks at every guard and block whether to leave,
// and as baseline code that can be entered in the middle.
class LeavingModule {
 public:
  struct How {
    bool asks = true;
    bool to_host = false;
    // Block counts by function; empty: nothing is pruned.
    std::function<std::vector<uint64_t>(const jit::Function&)> counts = {};
    Copy copy = Copy::kPlain;
    // Speculated values of value probes, by function.
    std::function<std::vector<jit::SiteValues>(const jit::Function&)> values = {};
    // Every call is hot, and callees may be inlined.
    bool inlines = false;
  };

  LeavingModule(CodeMachine& machine, const jit::Module& module, const How& how)
      : machine_(machine), module_(module), how_(how), resolver_(machine) {
    helpers_.trap_exit = machine.routines->trap_exit();
    helpers_.leave = machine.routines->leave();
    helpers_.ask_to_leave = machine.routines->ask_to_leave();
    helpers_.loop_slow_plain = reinterpret_cast<const void*>(&LeavingModule::loop_slow);
    machine.leave = [this](jit::LeaveState& s, bool asked) { return leave(s, asked); };
    auto count = static_cast<uint32_t>(module.functions.size());
    for (uint32_t i = 0; i < count; ++i) EXPECT_TRUE(machine.stubs->ensure(MethodId(i)).ok());
    for (uint32_t i = 0; i < count; ++i) {
      baseline_.push_back(take(jit::compile_baseline(
          input(i), {.loop_checks = false, .enterable = true, .to_host = how.to_host})));
      optimized_.push_back(optimize(i, LoopId::none()));
      machine.stubs->set_target(MethodId(i), optimized_.back()->entry());
      if (how.copy == Copy::kPlain) continue;
      slabs_.emplace_back(slab_words(module.functions[i], *optimized_.back()));
      machine.thread.method(i).optimized_slab = slabs_.back().data();
    }
  }

  const void* entry(MethodId m) const { return machine_.stubs->stub(m); }
  const jit::Code& optimized(uint32_t i) const { return *optimized_[i]; }
  const jit::Code& baseline(uint32_t i) const { return *baseline_[i]; }

  // Returns whether ask number n, from 1, leaves.
  std::function<bool(uint64_t)> force = [](uint64_t) { return false; };
  // Returns the answer of the host's interpreter.
  std::function<uint64_t(const jit::ExitRow&, const std::vector<uint64_t>& slots)> resume;
  uint64_t asks = 0;
  uint64_t exits = 0;    // into baseline code
  uint64_t parents = 0;  // caller frames that these exits rebuilt
  uint64_t resumed = 0;  // into the host's interpreter

 private:
  struct Resolver final : jit::CallResolver {
    explicit Resolver(CodeMachine& m) : machine(m) {}
    jit::CallTarget target(MethodId callee) override {
      return {jit::CallTarget::Kind::kStub, machine.stubs->stub(callee)};
    }
    CodeMachine& machine;
  };

  template <typename T>
  static T take(Result<T> r) {
    EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().message);
    return std::move(r).value();
  }
  static const void* loop_slow(uint32_t, uint32_t, void*) noexcept { __builtin_trap(); }

  jit::CompileInput input(uint32_t i) {
    return {module_.functions[i], MethodId(i), helpers_, resolver_, *machine_.space};
  }
  std::unique_ptr<jit::Code> optimize(uint32_t i, LoopId osr) {
    const jit::Function& f = module_.functions[i];
    std::vector<uint64_t> counts = how_.counts ? how_.counts(f) : std::vector<uint64_t>{};
    bool prune = !counts.empty();
    if (how_.inlines && !prune) counts = even_profile(f).blocks;
    std::vector<jit::SiteValues> values;
    if (how_.values) values = how_.values(f);
    ModuleInlinees inlinees(module_, even_profile, how_.to_host);
    return take(jit::compile_optimized(input(i), {.block_counts = counts,
                                                  .osr_loop = osr,
                                                  .copy = how_.copy,
                                                  .values = values,
                                                  .inlinees = how_.inlines ? &inlinees : nullptr,
                                                  .inline_guards = how_.inlines,
                                                  .to_host = how_.to_host,
                                                  .uncommon_traps = prune,
                                                  .ask_to_leave = how_.asks}));
  }

  jit::Leave leave(jit::LeaveState& s, bool asked) {
    if (asked && !force(++asks)) return jit::Leave::kStay;
    const jit::Code& from = *machine_.space->owner_of(jit::inside_of(s));
    const jit::ExitRow* row = from.exit_at(s.pc);
    if (row == nullptr) __builtin_trap();
    if (row->to_host) return go_to_host(s, from, *row);
    ++exits;
    return enter(s, from, *row, 0);
  }

  jit::Leave enter(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row,
                   uint32_t skipped) {
    parents += row.frames - 1;
    const jit::Code* to[jit::kMostExitFrames] = {};
    for (uint32_t n = 0; n < row.frames; ++n) {
      const jit::ExitFrame& frame = from.tables().exit_frames[row.frames_at + n];
      to[n] = baseline_[from.method_of(frame.body).index()].get();
    }
    jit::enter_baseline(s, from, row, to, skipped);
    return jit::Leave::kEnter;
  }

  jit::Leave go_to_host(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row) {
    ++resumed;
    const jit::ExitFrame& frame = from.tables().exit_frames[row.frames_at];
    std::vector<uint64_t> slots;
    for (uint32_t n = 0; n < frame.values; ++n) {
      const jit::ExitValue& v = from.tables().exit_values[frame.values_at + n];
      uint64_t bits = jit::value_at_exit(s, v);
      slots.push_back(v.wide ? bits : static_cast<uint32_t>(bits));
    }
    s.result = resume(row, slots);
    if (row.frames > 1) return enter(s, from, row, 1);
    jit::restore_saved(s, from);
    return jit::Leave::kReturn;
  }

  CodeMachine& machine_;
  const jit::Module& module_;
  How how_;
  Resolver resolver_;
  jit::Helpers helpers_;
  std::vector<std::unique_ptr<jit::Code>> baseline_, optimized_;
  std::vector<std::vector<uint64_t>> slabs_;
};

// Decides which asks leave.
struct Force {
  const char* name;
  std::function<bool(uint64_t)> forces;
};

std::vector<Force> forces(uint64_t seed) {
  return {
      {"never", [](uint64_t) { return false; }},
      {"always", [](uint64_t) { return true; }},
      {"every_third", [](uint64_t n) { return n % 3 == 0; }},
      {"one", [seed](uint64_t n) { return n == seed % 40 + 1; }},
      {"rarely", [seed](uint64_t n) { return Random(n ^ seed << 20).chance(7); }},
  };
}

struct Tally {
  uint64_t asks = 0;
  uint64_t exits = 0;
  uint64_t parents = 0;
};

// Runs every function of a random module once for each Force. Returns the first difference from the
// interpreter, or "".
std::string compare(uint64_t seed, const RandomOptions& options, const LeavingModule::How& how,
                    Tally& tally) {
  jit::Module module = random_module(seed, options);
  Scratch scratch;
  jit::Interpreter oracle(module, interpret_options(scratch));
  CodeMachine machine;
  LeavingModule code(machine, module, how);
  Random random(seed ^ 0x5eed);
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    const Signature& s = module.functions[f].signature();
    for (int round = 0; round < 2; ++round) {
      std::vector<uint64_t> args = random_arguments(s, scratch, random);
      Expected want = expected_of(oracle, MethodId(f), args, scratch);
      for (const Force& force : forces(seed + static_cast<uint64_t>(round))) {
        code.force = force.forces;
        code.asks = 0;
        std::string what = difference(
            want, s.result, scratch, [&] { return machine.run(code.entry(MethodId(f)), s, args); });
        tally.asks += code.asks;
        if (!what.empty()) {
          return "seed " + std::to_string(seed) + " f" + std::to_string(f) + " round " +
                 std::to_string(round) + " " + force.name + ": " + what;
        }
      }
    }
  }
  tally.exits += code.exits;
  tally.parents += code.parents;
  return "";
}

uint64_t seeds() {
  const char* text = std::getenv("UPTIER_RANDOM_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 100;
}

TEST(DeoptCode, random_programs_answer_the_same_wherever_they_leave) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds(); ++seed) {
    ASSERT_EQ("", compare(seed, {.guards = true}, {}, tally));
  }
  EXPECT_GT(tally.exits, 10 * seeds());
}

TEST(DeoptCode, large_random_programs_answer_the_same_wherever_they_leave) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds() / 6; ++seed) {
    RandomOptions options{
        .functions = 2, .statements = 200, .variables = 50, .depth = 5, .guards = true};
    ASSERT_EQ("", compare(seed + 100'000, options, {}, tally));
  }
}

TEST(DeoptCode, instrumented_copies_of_optimized_code_leave_too) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds() / 4; ++seed) {
    ASSERT_EQ("", compare(seed, {.guards = true}, {.copy = Copy::kInstrumented}, tally));
  }
  EXPECT_GT(tally.exits, seeds());
}

TEST(DeoptCode, inlined_bodies_leave_for_their_callers_frames_too) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= 2 * seeds(); ++seed) {
    RandomOptions options{.functions = 5, .guards = true};
    ASSERT_EQ("", compare(seed, options, {.asks = seed % 4 != 0, .inlines = true}, tally));
  }
  EXPECT_GT(tally.exits, 10 * seeds());
  EXPECT_GT(tally.parents, seeds());
}

// With arbitrary profiles: blocks that were pruned run all the same.
TEST(DeoptCode, pruned_blocks_answer_the_same_when_they_are_reached) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds(); ++seed) {
    Random random(seed);
    auto counts = [&](const jit::Function& f) {
      std::vector<uint64_t> c(f.block_sites, 100);
      for (uint64_t& n : c) n = random.chance(25) ? 0 : n;
      return c;
    };
    LeavingModule::How how{.asks = seed % 2 == 0, .counts = counts};
    ASSERT_EQ("", compare(seed, {.guards = true}, how, tally));
  }
  EXPECT_GT(tally.exits, seeds());
}

// Returns a guess for each value probe, right or wrong: a small value, or a range.
std::vector<jit::SiteValues> wild_guesses(const jit::Function& f, Random& r) {
  std::vector<jit::SiteValues> guesses;
  for (jit::InstId id : jit::value_probes(f)) {
    auto min = static_cast<int64_t>(r.below(12)) - 3;
    int64_t max = r.chance(50) ? min : min + static_cast<int64_t>(r.next() >> (2 + r.below(62)));
    if (r.chance(20)) min = INT32_MIN;
    guesses.push_back({f.inst(id).aux, min, max});
  }
  return guesses;
}

// With arbitrary guesses: the real values differ.
TEST(DeoptCode, guesses_of_values_answer_the_same_when_they_are_wrong) {
  corpus_raise = raise_in_context;
  Tally tally, asked;
  for (uint64_t seed = 1; seed <= 2 * seeds(); ++seed) {
    Random random(seed);
    LeavingModule::How how{.asks = seed % 3 == 0, .values = [&](const jit::Function& f) {
                             return wild_guesses(f, random);
                           }};
    how.inlines = seed % 5 == 0;
    ASSERT_EQ("", compare(seed, {.guards = seed % 2 == 0}, how, seed % 3 == 0 ? asked : tally));
  }
  EXPECT_GT(tally.exits, seeds());
}

// ---- Listings
// -------------------------------------------------------------------------------------

std::string text_of(const jit::ExitValue& v) {
  using From = jit::ExitValue::From;
  auto signed_what = static_cast<int64_t>(v.what);
  switch (v.from) {
    case From::kGp: return "gp" + std::to_string(v.what);
    case From::kXmm: return "xmm" + std::to_string(v.what);
    case From::kFrame: return "[rbp" + std::to_string(signed_what) + "]";
    case From::kConstant: return "#" + std::to_string(signed_what);
  }
  return "?";
}

std::string exits_text(const jit::Code& code) {
  std::string text;
  const jit::CodeTables& t = code.tables();
  for (const jit::ExitRow& r : t.exits) {
    const jit::ExitFrame& f = t.exit_frames[r.frames_at];
    text += "exit " + std::to_string(r.exit) + " " + guard_reason_name(r.reason) + " at " +
            std::to_string(r.offset) + " to point " + std::to_string(f.point) + " pc " +
            std::to_string(f.pc) + ":";
    for (uint32_t n = 0; n < f.values; ++n) {
      const jit::ExitValue& v = t.exit_values[f.values_at + n];
      text += " " + text_of(v) + (v.wide ? "" : ".32") + "->" + std::to_string(v.to);
    }
    text += "\n";
  }
  return text;
}

// A guard whose frame state needs a register, a constant, and a value that only baseline code uses.
constexpr const char* kGuarded = R"(
func @guarded(i32, i64, f64) -> i64 {
b0(v0: i32, v1: i64, v2: f64):
  v3 = const.i64 7
  v4 = mul.i64 v1, v3
  frame_state pc=5 [v0, v3, v2]
  v5 = const.i32 100
  v6 = lt_u.i32 v0, v5
  guard v6, bounds @3
  v7 = extend_u.i64 v0
  v8 = add.i64 v4, v7
  v9 = trunc_sat_s.i64 v2
  v10 = add.i64 v8, v9
  return v10
}
)";

TEST(DeoptCode, an_exit_is_a_call_behind_the_body) {
  std::string text;
  for (bool to_host : {false, true}) {
    CodeMachine machine;
    jit::Module module = parse_or_die(kGuarded);
    LeavingModule code(machine, module, {.asks = false, .to_host = to_host});
    const jit::Code& o = code.optimized(0);
    const jit::Code& b = code.baseline(0);
    text += to_host ? "==== to the host\n" : "==== to baseline code\n";
    text += disassemble(o.base(), o.size()) + exits_text(o);
    text += "---- baseline code\n" + disassemble(b.base(), b.size()) + exits_text(b);
    for (uint32_t point = 0; point < b.tables().entries.size(); ++point) {
      text += "point " + std::to_string(point) + " at " +
              std::to_string(b.tables().entries[point]) + "\n";
    }
  }
  expect_golden("deopt_listing", text);
}

TEST(DeoptCode, a_host_gets_what_the_frame_state_names) {
  for (Copy copy : {Copy::kPlain, Copy::kInstrumented}) {
    CodeMachine machine;
    jit::Module module = parse_or_die(kGuarded);
    LeavingModule code(machine, module, {.asks = false, .to_host = true, .copy = copy});
    std::vector<uint64_t> seen;
    code.resume = [&](const jit::ExitRow& row, const std::vector<uint64_t>& slots) {
      EXPECT_EQ(row.reason, GuardReason::kBounds);
      seen = slots;
      return uint64_t{4711};
    };
    std::vector<uint64_t> args{101, 3, std::bit_cast<uint64_t>(2.5)};
    for (const jit::Code* c : {&code.optimized(0), &code.baseline(0)}) {
      auto got = machine.run(c->entry(), module.functions[0].signature(), args);
      EXPECT_EQ(got.bits, 4711u);
      EXPECT_EQ(seen, (std::vector<uint64_t>{101, 7, std::bit_cast<uint64_t>(2.5)}));
    }
    args[0] = 99;
    auto held = machine.run(code.optimized(0).entry(), module.functions[0].signature(), args);
    EXPECT_EQ(held.bits, 99u + 21 + 2);
    EXPECT_EQ(code.resumed, 2u);
  }
}

// A guard that computes the sum it checks: on overflow it leaves with the operands of the sum.
TEST(DeoptCode, a_sum_that_overflows_leaves_what_it_is_made_of) {
  jit::Module module = parse_or_die(R"(
func @sum(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  frame_state pc=5 [v0, v1]
  v2 = add_overflows.i32 v0, v1
  v3 = eqz.i32 v2
  guard v3, overflow @3
  v4 = add.i32 v0, v1
  v9 = gt_s.i32 v4, v1
  return v9
}
func @product(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  frame_state pc=6 [v1, v0]
  v2 = mul_overflows.i32 v0, v1
  v3 = eqz.i32 v2
  guard v3, overflow @3
  v4 = mul.i32 v0, v1
  v9 = gt_s.i32 v4, v1
  return v9
}
func @less(i64, i64) -> i32 {
b0(v0: i64, v1: i64):
  frame_state pc=7 [v0, v1]
  v2 = sub_overflows.i64 v0, v1
  v3 = eqz.i32 v2
  guard v3, overflow @3
  v4 = sub.i64 v0, v1
  v9 = gt_s.i64 v4, v1
  return v9
}
func @next(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  v2 = const.i32 7
  frame_state pc=8 [v0]
  v3 = add_overflows.i32 v2, v0
  v4 = eqz.i32 v3
  guard v4, overflow @3
  v5 = add.i32 v0, v2
  v9 = gt_s.i32 v5, v1
  return v9
}
func @twice(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  frame_state pc=9 [v0]
  v2 = add_overflows.i32 v0, v0
  v3 = eqz.i32 v2
  guard v3, overflow @3
  v4 = add.i32 v0, v0
  v9 = gt_s.i32 v4, v1
  return v9
}
func @unboxed(i64, i32) -> i32 {
b0(v0: i64, v1: i32):
  v2 = wrap.i32 v0
  v3 = const.i32 9
  frame_state pc=10 [v0]
  v4 = add_overflows.i32 v2, v3
  v5 = eqz.i32 v4
  guard v5, overflow @3
  v6 = add.i32 v2, v3
  v7 = gt_s.i32 v6, v1
  return v7
}
func @beside(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  v2 = xor.i32 v0, v1
  frame_state pc=11 [v2]
  v3 = add_overflows.i32 v0, v1
  v4 = eqz.i32 v3
  guard v4, overflow @3
  v5 = add.i32 v0, v1
  v6 = gt_s.i32 v5, v0
  return v6
}
func @upon(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  v2 = xor.i32 v0, v1
  frame_state pc=12 [v0]
  v3 = sub_overflows.i32 v0, v2
  v4 = eqz.i32 v3
  guard v4, overflow @3
  v5 = sub.i32 v0, v2
  v6 = eq.i32 v5, v0
  return v6
}
)");
  CodeMachine machine;
  LeavingModule code(machine, module, {.asks = false, .to_host = true});
  std::vector<uint64_t> seen;
  code.resume = [&](const jit::ExitRow&, const std::vector<uint64_t>& slots) {
    seen = slots;
    return uint64_t{4711};
  };
  auto run = [&](uint32_t f, uint64_t a, uint64_t b) {
    seen.clear();
    std::vector<uint64_t> args{a, b};
    return machine.run(code.optimized(f).entry(), module.functions[f].signature(), args).bits;
  };
  using Slots = std::vector<uint64_t>;
  auto expect_left = [&](uint32_t f, uint64_t a, uint64_t b, const Slots& slots) {
    SCOPED_TRACE(module.functions[f].name);
    EXPECT_EQ(run(f, a, b), 4711u);
    EXPECT_EQ(seen, slots);
  };
  const uint64_t least = uint64_t{1} << 63, box = uint64_t{0xABCD} << 48 | INT32_MAX;
  EXPECT_EQ(run(0, 40, 2), 1u);
  EXPECT_EQ(run(1, 9, 2), 1u);
  EXPECT_EQ(run(2, 40, 2), 1u);
  EXPECT_EQ(run(3, 40, 2), 1u);
  EXPECT_EQ(run(4, 40, 2), 1u);
  EXPECT_EQ(run(5, 40, 0), 1u);
  EXPECT_TRUE(seen.empty());
  expect_left(0, INT32_MAX, 5, {INT32_MAX, 5});
  expect_left(1, 100'000, 30'000, {30'000, 100'000});
  expect_left(2, least, 5, {least, 5});
  expect_left(3, INT32_MAX - 6, 0, {INT32_MAX - 6});
  expect_left(4, INT32_MAX, 0, {INT32_MAX});
  expect_left(5, box, 1, {box});
  EXPECT_EQ(run(6, 40, 2), 1u);
  expect_left(6, INT32_MAX, 5, {INT32_MAX ^ 5});
  EXPECT_EQ(run(7, 40, 40), 1u);
  EXPECT_EQ(run(7, 40, 41), 0u);
  for (uint32_t f = 0; f < 2; ++f) {
    const jit::Code& made = code.optimized(f);
    std::string text = disassemble(made.base(), made.size());
    const std::string op = f == 0 ? "add e" : "imul e";
    EXPECT_EQ(text.find(op), text.rfind(op)) << text;
    EXPECT_NE(text.find(op), std::string::npos) << text;
  }
}

// Three inlined bodies share one frame. The innermost one exits to the host; with the host's answer
// the two others go on in their own frames.
TEST(DeoptCode, a_callers_frame_goes_on_with_what_the_host_answers) {
  jit::Module module = parse_or_die(R"(
func @inner(i32, f64) -> f64 {
b0(v0: i32, v1: f64):
  frame_state pc=3 [v0, v1]
  v2 = const.i32 10
  v3 = lt_u.i32 v0, v2
  guard v3, type @1
  return v1
}
func @middle(i32, f64) -> f64 {
b0(v0: i32, v1: f64):
  v2 = fadd.f64 v1, v1
  v3 = call @inner(v0, v2)
  v4 = fadd.f64 v3, v2
  return v4
}
func @outer(i32, f64, i64) -> f64 {
b0(v0: i32, v1: f64, v2: i64):
  v3 = const.i32 1
  v4 = add.i32 v0, v3
  v5 = call @middle(v4, v1)
  v6 = convert_s.f64 v2
  v7 = fadd.f64 v5, v6
  v8 = fadd.f64 v7, v1
  return v8
}
)");
  CodeMachine machine;
  LeavingModule code(machine, module, {.asks = false, .to_host = true, .inlines = true});
  ASSERT_EQ(code.optimized(2).tables().inlined.size(), 2u);
  std::vector<uint64_t> seen;
  code.resume = [&](const jit::ExitRow& row, const std::vector<uint64_t>& slots) {
    EXPECT_EQ(row.frames, 3u);
    seen = slots;
    return std::bit_cast<uint64_t>(1000.0);
  };
  std::vector<uint64_t> args{8, std::bit_cast<uint64_t>(2.5), 7};
  auto run = [&] {
    auto got = machine.run(code.entry(MethodId(2)), module.functions[2].signature(), args);
    return std::bit_cast<double>(got.bits);
  };
  EXPECT_EQ(run(), 5.0 + 5 + 7 + 2.5);
  EXPECT_EQ(code.resumed, 0u);
  args[0] = 9;
  EXPECT_EQ(run(), 1000.0 + 5 + 7 + 2.5);
  EXPECT_EQ(seen, (std::vector<uint64_t>{10, std::bit_cast<uint64_t>(5.0)}));
  EXPECT_EQ(code.resumed, 1u);
  EXPECT_EQ(code.parents, 2u);
}

}  // namespace
}  // namespace uptier::test::deopt_code_test
