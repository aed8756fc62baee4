// Value probes in the instrumented copy of optimized code see the same values as in the
// interpreter: in loops, in code that passes copy or remove, and before and after instructions that
// trap.
#include <cmath>

#include "tests/support/opt_harness.h"
#include "tests/support/site_probe.h"

namespace uptier::test::opt_probes_test {
namespace {

constexpr uint32_t kEntries = 256;

// Makes all NaNs the same: the interpreter and compiled code may produce different ones.
uint64_t one_nan(uint64_t bits) {
  return std::isnan(std::bit_cast<double>(bits)) ? std::bit_cast<uint64_t>(std::nan("")) : bits;
}

struct Tally {
  uint64_t events = 0, sites = 0, copied = 0, removed = 0, traps = 0;
};

// Instrumented copies of optimized code for a module, compared with the interpreter.
class Copies {
 public:
  explicit Copies(const jit::Module& module, const OptimizedModule::Counts& counts = nullptr)
      : module_(module), code_(machine_, module, counts, Copy::kInstrumented, kEntries) {
    ring_ = CodeMachine::take(sampler::LogRing::create(1 << 16));
    machine_.thread.context().log = ring_.get();
    for (uint32_t m = 0; m < module.functions.size(); ++m) find_floats(m);
  }

  // Runs both. Returns a difference, or "".
  std::string run(uint32_t method, const std::vector<uint64_t>& args, Tally& tally) {
    jit::InterpretOptions options = interpret_options(scratch_);
    options.observer = &oracle_;
    jit::Interpreter interpreter(module_, options);
    scratch_.fill();
    Answer want = interpret(interpreter, MethodId(method), args);
    std::string bytes = scratch_.bytes();
    scratch_.fill();
    const Signature& s = module_.functions[method].signature();
    auto got = machine_.run(code_.entry(MethodId(method)), s, args);
    tally.traps += want.trap != TrapCode::kNone;
    bool same = got.trap == want.trap && bytes == scratch_.bytes() &&
                (want.trap != TrapCode::kNone || same_value(s.result, got.bits, want.bits));
    return same ? "" : module_.functions[method].name + ": answer";
  }

  std::string run_random(Random& random, Tally& tally) {
    for (uint32_t f = 0; f < module_.functions.size(); ++f) {
      for (int round = 0; round < 3; ++round) {
        auto args = random_arguments(module_.functions[f].signature(), scratch_, random);
        if (std::string wrong = run(f, args, tally); !wrong.empty()) return wrong;
      }
    }
    return "";
  }

  // Compares all sites and all records. Returns the first difference, or "".
  std::string compare(Tally& tally) {
    for (uint32_t m = 0; m < module_.functions.size(); ++m) {
      const jit::Function& f = module_.functions[m];
      for (uint32_t i = 0; i < code_.plans()[m].sites.size(); ++i) {
        SiteId site = f.block_sites + 1 + i;
        if (code_.plans()[m].sites[i].offset == jit::ProbePlan::kNone) continue;
        std::string wrong = compare_site(m, i, site);
        if (!wrong.empty()) return f.name + " site " + std::to_string(site) + ": " + wrong;
        size_t rows = places_of(m, site);
        ++tally.sites;
        tally.events += oracle_.values[{m, site}].size();
        tally.copied += rows > 1;
        tally.removed += rows == 0;
      }
    }
    return compare_log();
  }

  // Returns the number of copies of the site in the code.
  size_t places_of(uint32_t m, SiteId site) const {
    const auto& rows = code_.codes()[m]->tables().probes;
    return static_cast<size_t>(std::ranges::count_if(
        rows, [&](const jit::ProbeRow& r) { return r.body == 0 && r.site == site; }));
  }

  const void* entry(uint32_t method) const { return code_.entry(MethodId(method)); }
  Scratch& scratch() { return scratch_; }

 private:
  void find_floats(uint32_t m) {
    const jit::Function& f = module_.functions[m];
    for (Block b : f.layout) {
      for (jit::InstId id : f.block(b).insts) {
        const jit::Inst& i = f.inst(id);
        bool seen = i.op == Opcode::kProbe && i.args.size == 1;
        if (seen && is_float(f.type_of(f.args(i)[0]))) floats_.insert({m, i.aux});
      }
    }
  }

  uint64_t seen_as(uint32_t m, SiteId site, uint64_t bits) const {
    return floats_.contains({m, site}) ? one_nan(bits) : bits;
  }

  std::string compare_site(uint32_t m, uint32_t index, SiteId site) {
    const jit::ProbePlan& plan = code_.plans()[m];
    ProbeKind kind = plan.sites[index].kind;
    std::vector<uint64_t> seen = oracle_.values[{m, site}];
    SiteCounts got = jit::site_counts(plan, index, code_.slabs()[m]);
    bool nan = false;
    for (uint64_t& v : seen) {
      v = seen_as(m, site, v);
      nan |= floats_.contains({m, site}) && std::isnan(std::bit_cast<double>(v));
    }
    if (kind == ProbeKind::kCallTarget) {
      for (TableEntry& e : got.entries) {
        e.key = machine_.stubs->method_of(reinterpret_cast<const void*>(e.key)).index();
      }
    } else if (nan) {
      std::vector<uint64_t> all;
      for (const TableEntry& e : got.entries) {
        all.insert(all.end(), e.count, seen_as(m, site, e.key));
      }
      got.entries = table_of(all);
      if (kind == ProbeKind::kGauge) got.words[0] = seen_as(m, site, got.words[0]);
    }
    SiteCounts want = expected_counts(kind, seen, 0);
    if (want.entries.size() > kEntries) {
      uint64_t mass = got.words.back();
      for (const TableEntry& e : got.entries) mass += e.count;
      return mass == seen.size() ? "" : "mass";
    }
    if (nan && kind == ProbeKind::kValue) got.words.resize(1), want.words.resize(1);
    if (got.words != want.words) {
      return "word 0 is " + std::to_string(got.words[0]) + ", not " + std::to_string(want.words[0]);
    }
    return got.entries == want.entries ? "" : "entries";
  }

  std::string compare_log() {
    std::vector<sampler::LogRecord> got;
    ring_->read(got);
    if (got.size() != oracle_.log.size()) return "records";
    for (size_t i = 0; i < got.size(); ++i) {
      sampler::LogRecord want = oracle_.log[i];
      want.value = seen_as(want.method, want.site, want.value);
      got[i].value = seen_as(got[i].method, got[i].site, got[i].value);
      got[i].cycles = 0;
      if (got[i] != want) return "record " + std::to_string(i);
    }
    return "";
  }

  const jit::Module& module_;
  Scratch scratch_;
  CodeMachine machine_;
  OptimizedModule code_;
  std::unique_ptr<sampler::LogRing> ring_;
  Oracle oracle_;
  std::set<std::pair<uint32_t, SiteId>> floats_;  // sites by method
};

// ---- Random programs ----------------------------------------------------------------------------

std::string compare_random(uint64_t seed, const RandomOptions& options, Tally& tally,
                           const OptimizedModule::Counts& counts = nullptr) {
  jit::Module module = random_module(seed, options);
  Copies copies(module, counts);
  Random random(seed ^ 0x5eed);
  std::string wrong = copies.run_random(random, tally);
  if (wrong.empty()) wrong = copies.compare(tally);
  return wrong.empty() ? "" : "seed " + std::to_string(seed) + " " + wrong;
}

TEST(OptProbes, random_programs_observe_what_the_interpreter_sees) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    bool odd = seed % 4 == 0;
    ASSERT_EQ("", compare_random(seed, {.statements = 80, .guards = true, .odd = odd}, tally));
  }
  EXPECT_GT(tally.events, 10'000u);
  EXPECT_GT(tally.traps, 0u);
  EXPECT_GT(tally.copied, 0u);
  EXPECT_GT(tally.removed, 0u);
}

// Many live values: the slab's address is spilled.
TEST(OptProbes, they_are_exact_where_registers_are_short) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    RandomOptions o{.functions = 2, .statements = 200, .variables = 50, .depth = 5};
    ASSERT_EQ("", compare_random(seed + 100'000, o, tally));
  }
  EXPECT_GT(tally.events, 1'000u);
}

TEST(OptProbes, no_profile_changes_what_they_see) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    auto counts = [&](const jit::Function& f) {
      std::vector<uint64_t> c(f.block_sites);
      for (uint64_t& n : c) n = random.chance(30) ? 0 : random.next() >> random.below(64);
      return c;
    };
    ASSERT_EQ("", compare_random(seed + 200'000, {.statements = 80}, tally, counts));
  }
}

// ---- One by one -----------------------------------------------------------------------------------

TEST(OptProbes, every_kind_on_every_type) {
  jit::Module module = parse(kEveryKind);
  Copies copies(module);
  Random random(1);
  Tally tally;
  for (int i = 0; i < 200; ++i) {
    std::vector<uint64_t> args;
    for (Type t : module.functions[0].signature().params) {
      args.push_back(t == Type::kRef ? random.below(40) : random_bits(t, random));
    }
    ASSERT_EQ("", copies.run(0, args, tally));
  }
  EXPECT_EQ("", copies.compare(tally));
  EXPECT_GT(tally.events, 4'000u);
}

// The probes are in: a loop that runs three rounds (@around), a block after two others that decide
// its branch (@twice), a block that is removed (@never), a test at the top of a loop (@while).
// Sites are blocks, then probes in build order.
constexpr const char* kShapes = R"(
func @around(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 0
  jump b1(v1, v0)
b1(v2: i32, v3: i32):
  probe value v2
  probe counter v3
  v4 = add.i32 v3, v2
  probe range v4
  v5 = const.i32 1
  v6 = add.i32 v2, v5
  v7 = const.i32 3
  v8 = lt_s.i32 v6, v7
  branch v8, b1(v6, v4), b2
b2:
  return v4
}
func @twice(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 7
  v2 = gt_s.i32 v0, v1
  branch v2, b1, b2
b1:
  v3 = const.i32 1
  jump b3(v3)
b2:
  v4 = const.i32 0
  jump b3(v4)
b3(v5: i32):
  probe value v5
  probe hit
  branch v5, b4, b5
b4:
  probe gauge v0
  return v0
b5:
  probe log tag=3 v0
  v6 = mul.i32 v0, v0
  return v6
}
func @never(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 0
  branch v1, b1, b2
b1:
  probe value v0
  return v1
b2:
  probe value v0
  return v0
}
func @while(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 0
  jump b1(v0, v1)
b1(v2: i32, v3: i32):
  probe value v2
  branch v2, b2, b3
b2:
  v4 = mul.i32 v3, v3
  v5 = add.i32 v4, v2
  v6 = const.i32 1
  v7 = sub.i32 v2, v6
  jump b1(v7, v5)
b3:
  return v3
}
)";

TEST(OptProbes, what_is_copied_adds_up_and_what_is_removed_sees_nothing) {
  jit::Module module = parse(kShapes);
  Copies copies(module);
  Tally tally;
  for (uint32_t m = 0; m < 4; ++m) {
    for (uint64_t n = 0; n < 20; ++n) ASSERT_EQ("", copies.run(m, {n}, tally));
  }
  EXPECT_EQ("", copies.compare(tally));
  EXPECT_GT(copies.places_of(0, 4), 1u);
  EXPECT_GT(copies.places_of(1, 7), 1u);
  EXPECT_EQ(copies.places_of(2, 4), 0u);
  EXPECT_EQ(copies.places_of(2, 5), 1u);
  EXPECT_GT(copies.places_of(3, 5), 1u);
}

// Each probe is between two instructions that may trap, and neither needs the probed value.
TEST(OptProbes, a_trap_is_on_its_side_of_the_probe) {
  jit::Module module = parse(R"(
func @f(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = const.i32 100
  probe counter v2
  v3 = div_s.i32 v2, v1
  probe value v1
  probe range v3
  v4 = load.i32 v0 traps
  probe hit
  probe log tag=1 v1
  v5 = rem_u.i32 v4, v3
  probe gauge v5
  v6 = add.i32 v4, v5
  return v6
}
)");
  Copies copies(module);
  Tally tally;
  uint64_t inside = copies.scratch().base(), outside = inside + Scratch::kSize;
  for (uint64_t divisor : {0, 1, 7, 101}) {
    for (uint64_t place : {inside, outside}) {
      ASSERT_EQ("", copies.run(0, {place, divisor}, tally));
    }
  }
  EXPECT_EQ("", copies.compare(tally));
  EXPECT_EQ(tally.traps, 6u);
}

TEST(OptProbes, targets_are_counted_at_calls_and_at_probes) {
  jit::Module module = parse(R"(
func @one(i32) -> i32 {
b0(v0: i32):
  return v0
}
func @two(i32) -> i32 {
b0(v0: i32):
  v1 = add.i32 v0, v0
  return v1
}
func @call(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  probe call_target v0
  v2 = call_indirect.(i32)->i32 v0(v1)
  return v2
}
)");
  CodeMachine machine;
  OptimizedModule code(machine, module, nullptr, Copy::kInstrumented, kEntries);
  const Signature& s = module.functions[2].signature();
  for (uint32_t i = 0; i < 100; ++i) {
    auto target = reinterpret_cast<uint64_t>(code.entry(MethodId(i % 7 == 3 ? 1 : 0)));
    EXPECT_EQ(machine.run(code.entry(MethodId(2)), s, {target, i}).bits, i % 7 == 3 ? 2 * i : i);
  }
  for (uint32_t index : {0, 1}) {
    SiteCounts got = jit::site_counts(code.plans()[2], index, code.slabs()[2]);
    EXPECT_EQ(got.words, (std::vector<uint64_t>{0}));
    ASSERT_EQ(got.entries.size(), 2u);
    EXPECT_EQ(got.entries[0].key, reinterpret_cast<uint64_t>(code.entry(MethodId(0))));
    EXPECT_EQ(got.entries[0].count, 86u);
    EXPECT_EQ(got.entries[1].count, 14u);
  }
}

}  // namespace
}  // namespace uptier::test::opt_probes_test
