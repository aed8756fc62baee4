// Probes beside those of control flow: what instrumented copies count is what the interpreter saw.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>

#include "jit/plan_sites.h"
#include "sampler/log_ring.h"
#include "sampler/loop_timer.h"
#include "tests/baseline_module.h"
#include "tests/random_ir.h"

namespace uptier::test {
namespace {

using jit::SiteCounts;
using jit::SiteProbeRequest;
using sampler::TableEntry;
using Ran = CodeMachine::Ran;
using Use = BaselineModule::Use;

__extension__ using Int128 = __int128;

constexpr uint32_t kTop = 16;

SiteProbeRequest everything() {
  SiteProbeRequest r{.call_targets = true, .host_probes = true, .top = kTop};
  r.loops = {.loops = true, .function = true, .records = 5};
  return r;
}

// Blocks are counted too, before everything else.
BaselineModule::MakePlan planner(const SiteProbeRequest& r, bool blocks = true) {
  return [r, blocks](const jit::Function& f) {
    jit::ProbePlan plan;
    for (uint32_t b = 0; blocks && b < f.block_sites; ++b) plan.blocks.push_back(8 * b);
    plan.bytes = static_cast<uint32_t>(8 * plan.blocks.size());
    plan_sites(f, r, plan);
    return plan;
  };
}

// What the interpreter saw at one site: every value, in order.
class Oracle : public jit::InterpretObserver {
 public:
  struct Loop {
    uint64_t entries = 0, left = 0, iterations = 0;
  };

  void probe(MethodId m, const jit::Inst& i, uint64_t seen) override {
    if (jit::probe_kind(i) == ProbeKind::kCallTarget) return target(m, i.aux, seen);
    values[{m.index(), i.aux}].push_back(seen);
    if (jit::probe_kind(i) == ProbeKind::kLog) {
      log.push_back({m.index(), i.aux, jit::probe_tag(i), seen, 0});
    }
  }
  void target(MethodId m, SiteId s, uint64_t target) override {
    values[{m.index(), s}].push_back((target - jit::Interpreter::address_of(MethodId(0))) / 16);
  }
  void entered(MethodId m, LoopId l) override { ++loops[{m.index(), l.index()}].entries; }
  void left(MethodId m, LoopId l) override { ++loops[{m.index(), l.index()}].left; }
  void iterated(MethodId m, LoopId l) override { ++loops[{m.index(), l.index()}].iterations; }

  // Block counts are the interpreter's own.
  void add_blocks(const jit::Interpreter& i, const jit::Module& module) {
    for (uint32_t m = 0; m < module.functions.size(); ++m) {
      auto counts = i.site_counts(MethodId(m));
      blocks[m].resize(module.functions[m].block_sites);
      for (size_t b = 0; !counts.empty() && b < blocks[m].size(); ++b) blocks[m][b] += counts[b];
    }
  }

  std::map<uint32_t, std::vector<uint64_t>> blocks;
  std::map<std::pair<uint32_t, SiteId>, std::vector<uint64_t>> values;
  std::map<std::pair<uint32_t, uint32_t>, Loop> loops;
  std::vector<sampler::LogRecord> log;
};

std::vector<TableEntry> table_of(const std::vector<uint64_t>& seen) {
  std::map<uint64_t, uint64_t> counts;
  for (uint64_t v : seen) ++counts[v];
  std::vector<TableEntry> out;
  for (auto [key, count] : counts) out.push_back({key, count});
  std::stable_sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.count > b.count; });
  return out;
}

std::vector<uint64_t> summary_of(const std::vector<uint64_t>& seen) {
  Int128 sum = 0;
  int64_t least = INT64_MAX, greatest = INT64_MIN;
  for (uint64_t bits : seen) {
    auto v = static_cast<int64_t>(bits);
    sum += v;
    least = std::min(least, v);
    greatest = std::max(greatest, v);
  }
  return {seen.size(), static_cast<uint64_t>(sum), static_cast<uint64_t>(sum >> 64),
          static_cast<uint64_t>(least), static_cast<uint64_t>(greatest)};
}

// The exact answer; for tables with more values than entries, only what stays exact.
SiteCounts expected_counts(ProbeKind kind, const std::vector<uint64_t>& seen, uint64_t lost) {
  uint64_t total = 0;
  for (uint64_t v : seen) total += v;
  switch (kind) {
    case ProbeKind::kCallTarget: return {{0}, table_of(seen)};
    case ProbeKind::kValue: {
      SiteCounts c{summary_of(seen), table_of(seen)};
      c.words.push_back(0);
      return c;
    }
    case ProbeKind::kRange: return {summary_of(seen), {}};
    case ProbeKind::kCounter: return {{total}, {}};
    case ProbeKind::kHit: return {{seen.size()}, {}};
    case ProbeKind::kGauge: return {{seen.empty() ? 0 : seen.back()}, {}};
    case ProbeKind::kLog: return {{seen.size(), lost}, {}};
    default: return {};
  }
}

// A module in compiled code beside the interpreter.
class Probed {
 public:
  explicit Probed(const jit::Module& module, const SiteProbeRequest& r = everything(),
                  Use use = Use::kInstrumented)
      : module_(module), compiled(machine, module, use, planner(r)) {
    ring = CodeMachine::take(sampler::LogRing::create(1 << 14));
    machine.thread.context().log = ring.get();
    timer.set_costs(sampler::LoopTimer::measure(machine.routines->loop_pair()));
    machine.thread.context().loops = &timer;
  }

  // Runs both; `methods` of the arguments are method numbers.
  void run(uint32_t method, std::vector<uint64_t> args, const std::vector<size_t>& methods = {}) {
    jit::InterpretOptions options;
    options.observer = &oracle;
    jit::Interpreter interpreter(module_, options);
    std::vector<uint64_t> other = args;
    for (size_t i : methods) {
      args[i] = compiled.address_of(MethodId(static_cast<uint32_t>(args[i])));
      other[i] = jit::Interpreter::address_of(MethodId(static_cast<uint32_t>(other[i])));
    }
    auto expected = interpreter.run(MethodId(method), other);
    oracle.add_blocks(interpreter, module_);
    ASSERT_NE(expected.kind, jit::InterpretOutcome::Kind::kStopped) << expected.why;
    Ran got = compiled.run(MethodId(method), args);
    EXPECT_EQ(got.trap, expected.trap);
    EXPECT_EQ(got.bits, expected.bits);
  }

  SiteCounts counts(uint32_t method, uint32_t index) {
    SiteCounts c = site_counts(compiled.plan(method), index, compiled.slab(method));
    if (compiled.plan(method).sites[index].kind != ProbeKind::kCallTarget) return c;
    map_targets(c, [&](uint64_t pc) {
      return uint64_t{machine.stubs->method_of(reinterpret_cast<const void*>(pc)).index() +
                      uint32_t{1}};
    });
    for (TableEntry& e : c.entries) --e.key;
    return c;
  }
  auto loop(uint32_t method, uint32_t l) {
    return loop_counts(compiled.plan(method), LoopId(l), compiled.slab(method));
  }

  // Compares every site and loop; returns how many events there were.
  uint64_t check() {
    uint64_t events = 0;
    for (uint32_t m = 0; m < module_.functions.size(); ++m) {
      events += check_sites(m);
      check_loops(m);
      auto slab = compiled.slab(m).begin();
      const auto& blocks = oracle.blocks[m];
      EXPECT_EQ(std::vector<uint64_t>(slab, slab + ptrdiff_t(blocks.size())), blocks);
    }
    EXPECT_EQ(timer.losses().full, 0u);
    return events;
  }

  void check_loops(uint32_t m) {
    const jit::Function& f = module_.functions[m];
    for (uint32_t l = 0; l <= f.loop_count; ++l) {
      auto words = loop(m, l);
      const Oracle::Loop& o = oracle.loops[{m, l}];
      std::string where = f.name + " loop " + std::to_string(l);
      EXPECT_EQ(words[0], o.entries) << where;
      EXPECT_EQ(words[1], l == f.loop_count ? o.entries : o.iterations) << where;
      EXPECT_LE(words[2], o.left) << where;
      EXPECT_LE(words[3], words[1]) << where;
      EXPECT_LE(words[5], words[4]) << where;  // exclusive <= inclusive
    }
  }

  uint64_t check_sites(uint32_t m) {
    const jit::Function& f = module_.functions[m];
    uint64_t events = 0;
    for (uint32_t i = 0; i < compiled.plan(m).sites.size(); ++i) {
      const auto& site = compiled.plan(m).sites[i];
      const auto& seen = oracle.values[{m, f.block_sites + 1 + i}];
      if (site.offset == jit::ProbePlan::kNone) continue;
      events += seen.size();
      SiteCounts got = counts(m, i), want = expected_counts(site.kind, seen, 0);
      std::string where = f.name + " site " + std::to_string(f.block_sites + 1 + i);
      if (want.entries.size() <= kTop) {
        EXPECT_EQ(got.words, want.words) << where;
        EXPECT_EQ(got.entries, want.entries) << where;
        continue;
      }
      uint64_t mass = got.words.back();
      for (const TableEntry& e : got.entries) mass += e.count;
      EXPECT_EQ(mass, seen.size()) << where;
      if (site.kind != ProbeKind::kValue) continue;
      for (size_t w = 0; w < 5; ++w) EXPECT_EQ(got.words[w], want.words[w]) << where << " " << w;
    }
    return events;
  }

  void check_log() {
    std::vector<sampler::LogRecord> got;
    ring->read(got);
    ASSERT_EQ(got.size(), oracle.log.size());
    uint64_t last = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_GE(got[i].cycles, last);
      last = std::exchange(got[i].cycles, 0);
      EXPECT_EQ(got[i], oracle.log[i]);
    }
  }

 private:
  const jit::Module& module_;

 public:
  CodeMachine machine;
  std::unique_ptr<sampler::LogRing> ring;
  sampler::LoopTimer timer;
  Oracle oracle;
  BaselineModule compiled;
};

jit::Module parse(const std::string& text) {
  auto m = jit::parse_module(text, {"test", {}});
  if (!m.ok()) throw std::runtime_error(m.error().message);
  for (const jit::Function& f : m->functions) {
    if (Status ok = jit::verify(f); !ok.ok()) throw std::runtime_error(ok.error().message);
  }
  return std::move(m).value();
}

// Argument registers are full at the indirect call.
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

TEST(SiteProbes, targets_that_are_gone_count_as_other) {
  SiteCounts c{{5}, {{10, 7}, {20, 6}, {30, 4}, {40, 1}}};
  map_targets(c, [](uint64_t pc) { return pc == 20 ? 0 : pc == 30 || pc == 40 ? 99 : pc; });
  EXPECT_EQ(c, (SiteCounts{{11}, {{10, 7}, {99, 5}}}));
}

// Every kind, with values of every type, some of which nothing else needs and some of which come
// from far above.
const char* kValues = R"(
func @f(i32, i64, f32, f64, ref) -> i64 {
b0(v0: i32, v1: i64, v2: f32, v3: f64, v4: ref):
  v5 = mul.i32 v0, v0
  probe value v0
  probe value v1
  probe value v2
  probe value v3
  probe value v4
  v6 = sub.i64 v1, v1
  probe range v0
  probe range v1
  probe range v5
  v7 = const.i32 -9
  probe range v7
  probe value v7
  probe counter v0
  probe counter v1
  probe counter v7
  probe hit
  probe hit v3
  probe gauge v0
  probe gauge v2
  probe gauge v3
  probe log tag=4000000000 v0
  probe log tag=7 v2
  probe log v1
  v8 = lt_s.i32 v0, v7
  branch v8, b1, b2
b1:
  probe counter v5
  jump b2
b2:
  probe value v5
  probe value v8
  v9 = add.i64 v6, v1
  return v9
}
)";

TEST(SiteProbes, every_kind_on_every_type) {
  jit::Module module = parse(kValues);
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
  jit::Module module = parse(kValues);
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
  jit::Module module = parse(std::string(kTargets) + kValues);
  jit::ProbePlan none;
  plan_sites(module.functions[3], {}, none);
  EXPECT_EQ(none.bytes, 0u);
  EXPECT_TRUE(none.loops.empty());
  jit::ProbePlan calls;
  calls.bytes = 20;
  plan_sites(module.functions[2], {.call_targets = true, .top = 3}, calls);
  EXPECT_EQ(calls.sites[0].offset, 24u);
  EXPECT_EQ(calls.sites[1].offset, jit::ProbePlan::kNone);
  EXPECT_EQ(calls.bytes, 24 + 8 * (3 + 2 * 3u));
  EXPECT_EQ(site_counts(calls, 1, {}), SiteCounts{});
}

TEST(SiteProbes, a_thread_without_ring_and_timer_counts_and_loses) {
  jit::Module module = parse(kValues);
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

// ---- Loops --------------------------------------------------------------------------------------

// Two inner loops side by side; one is left by a return, one to the outside of both.
const char* kNest = R"(
func @nest(i32, i32) -> i64 {
b0(v0: i32, v1: i32):
  v2 = const.i64 0
  v3 = const.i32 1
  v4 = const.i32 0
  jump b1(v0, v2)
b1(v5: i32, v6: i64):
  loop_header 0 pc=0 []
  jump b2(v1, v6)
b2(v7: i32, v8: i64):
  loop_header 1 pc=1 []
  v9 = extend_s.i64 v7
  v10 = add.i64 v8, v9
  v11 = sub.i32 v7, v3
  v12 = gt_s.i32 v11, v4
  branch v12, b2(v11, v10), b3(v1, v10)
b3(v13: i32, v14: i64):
  loop_header 2 pc=2 []
  v15 = const.i32 77
  v16 = eq.i32 v13, v15
  branch v16, b7, b4
b4:
  v17 = const.i32 99
  v18 = eq.i32 v13, v17
  v19 = sub.i32 v13, v3
  v20 = gt_s.i32 v19, v4
  switch v18, [b5], b6
b5:
  branch v20, b3(v19, v14), b8
b6:
  v21 = mul.i64 v14, v14
  return v21
b7:
  return v14
b8:
  v22 = sub.i32 v5, v3
  v23 = gt_s.i32 v22, v4
  branch v23, b1(v22, v14), b9
b9:
  return v14
}
)";

TEST(LoopForest, nests_and_measures) {
  jit::Module module = parse(kNest);
  jit::LoopForest f = find_loop_forest(module.functions[0]);
  ASSERT_EQ(f.loops.size(), 3u);
  EXPECT_FALSE(f.loops[0].parent.valid());
  EXPECT_EQ(f.loops[0].height, 1u);
  EXPECT_EQ(f.loops[0].siblings, 0u);
  for (uint32_t inner : {1, 2}) {
    EXPECT_EQ(f.loops[inner].parent, LoopId(0));
    EXPECT_EQ(f.loops[inner].depth, 1u);
    EXPECT_EQ(f.loops[inner].height, 0u);
    EXPECT_EQ(f.loops[inner].siblings, 1u);
  }
  EXPECT_EQ(f.loops[0].blocks.size(), 6u);
  EXPECT_EQ(f.loops[1].blocks.size(), 1u);
  EXPECT_EQ(f.loops[2].blocks.size(), 3u);
  using Chosen = std::vector<bool>;
  EXPECT_EQ(select_loops(f, {}), (Chosen{false, false, false, false}));
  EXPECT_EQ(select_loops(f, {.loops = true}), (Chosen{true, true, true, false}));
  EXPECT_EQ(select_loops(f, {.function = true}), (Chosen{false, false, false, true}));
  EXPECT_EQ(select_loops(f, {.loops = true, .max_depth = 0}), (Chosen{true, false, false, false}));
  EXPECT_EQ(select_loops(f, {.loops = true, .min_height = 1}), (Chosen{true, false, false, false}));
  EXPECT_EQ(select_loops(f, {.loops = true, .siblings_only = true}),
            (Chosen{false, true, true, false}));
}

TEST(LoopProbes, entries_and_iterations_whatever_leaves_the_loop) {
  jit::Module module = parse(kNest);
  Probed p(module);
  for (uint64_t outer : {1, 2, 5}) {
    for (uint64_t inner : {1, 3, 77, 80, 99, 120}) p.run(0, {outer, inner});
  }
  p.check();
  EXPECT_EQ(p.timer.depth(), 0u);
  for (uint32_t l = 0; l <= 3; ++l) {
    auto words = p.loop(0, l);
    EXPECT_EQ(words[2], 5u) << l;  // the records that there may be
  }
}

TEST(LoopProbes, times_make_sense) {
  jit::Module module = parse(kNest);
  SiteProbeRequest r = everything();
  r.loops.records = 1'000'000;
  Probed p(module, r);
  for (int i = 0; i < 20; ++i) p.run(0, {50, 76});
  p.check();
  auto outer = p.loop(0, 0), first = p.loop(0, 1), second = p.loop(0, 2), body = p.loop(0, 3);
  EXPECT_EQ(first[2], first[0]);
  EXPECT_EQ(first[3], first[1]);
  EXPECT_EQ(outer[3], outer[1]);
  EXPECT_GT(first[4], 0u);
  EXPECT_GE(outer[4], first[4] + second[4]);  // children within their parent
  EXPECT_EQ(outer[4] - outer[5], first[4] + second[4]);
  EXPECT_GE(body[4], outer[4]);
  EXPECT_EQ(body[4] - body[5], outer[4]);
  EXPECT_EQ(first[5], first[4]);
}

TEST(LoopProbes, the_code_tables_say_where_each_loop_lies) {
  jit::Module module = parse(kNest);
  Probed p(module);
  const auto& ranges = p.compiled.code(0, Copy::kInstrumented).tables().loop_ranges;
  ASSERT_EQ(ranges.size(), 4u);
  for (uint32_t l = 0; l < 4; ++l) {
    EXPECT_EQ(ranges[l].loop, l);
    EXPECT_LT(ranges[l].begin, ranges[l].end);
  }
  EXPECT_EQ(ranges[3].begin, 0u);
  EXPECT_LE(ranges[0].end, ranges[3].end);
  EXPECT_LE(ranges[0].begin, ranges[1].begin);
  EXPECT_LE(ranges[1].end, ranges[2].begin);
  EXPECT_LE(ranges[2].end, ranges[0].end);
  EXPECT_TRUE(p.compiled.code(0, Copy::kPlain).tables().loop_ranges.empty());
}

TEST(LoopProbes, rearming_times_again) {
  jit::Module module = parse(kNest);
  Probed p(module);
  for (uint64_t flush = 1; flush <= 3; ++flush) {
    for (int i = 0; i < 30; ++i) p.run(0, {2, 3});
    EXPECT_EQ(p.loop(0, 1)[2], 5 * flush);
    rearm_loops(p.compiled.plan(0), p.compiled.slab(0).data());
  }
}

TEST(LoopProbes, a_trap_leaves_nothing_that_is_credited_later) {
  jit::Module module = parse(R"(
func @f(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 1
  jump b1(v0)
b1(v2: i32):
  loop_header 0 pc=0 []
  v3 = const.i32 100
  v4 = div_s.i32 v3, v2
  v5 = sub.i32 v2, v1
  v6 = const.i32 50
  v7 = gt_s.i32 v5, v6
  v8 = const.i32 60
  v9 = lt_s.i32 v0, v8
  v10 = or.i32 v7, v9
  branch v10, b1(v5), b2
b2:
  return v4
}
)");
  SiteProbeRequest r = everything();
  r.loops.records = 1000;
  Probed p(module, r);
  for (int i = 0; i < 100; ++i) {
    p.run(0, {10});  // counts down to a division by zero
    p.run(0, {70});
  }
  p.check();
  EXPECT_EQ(p.loop(0, 0)[2], 100u);
  EXPECT_EQ(p.loop(0, 0)[3], 20u * 100);
  EXPECT_EQ(p.timer.losses().stale, 200u);
}

// Two threads in the same code, each with its slab, timer and stack.
TEST(LoopProbes, threads_do_not_meet) {
  jit::Module module = parse(kNest);
  SiteProbeRequest r = everything();
  r.loops.records = 1'000'000;
  Probed p(module, r);
  constexpr uint32_t kRuns = 300;
  std::vector<uint64_t> slab(p.compiled.slab(0).size());
  uint64_t stale = 1;
  std::thread other([&] {
    AttachedThread thread;
    sampler::LoopTimer timer;
    thread.context().loops = &timer;
    thread.method(0).slab = slab.data();
    thread.method(0).loop_countdown = -AttachedThread::kNever;
    for (uint32_t i = 0; i < kRuns; ++i) p.compiled.run(MethodId(0), {7, 40});
    stale = timer.losses().stale + timer.depth();
  });
  for (uint32_t i = 0; i < kRuns; ++i) p.run(0, {7, 40});
  other.join();
  p.check();
  EXPECT_EQ(stale, 0u);
  for (uint32_t l = 0; l <= 3; ++l) {
    auto mine = p.loop(0, l), its = loop_counts(p.compiled.plan(0), LoopId(l), slab);
    for (size_t w = 0; w < 4; ++w) EXPECT_EQ(mine[w], its[w]) << l << " " << w;
  }
}

TEST(LoopProbes, recursion_counts_what_is_whose) {
  jit::Module module = parse(R"(
func @f(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 1
  v2 = const.i32 3
  v3 = eqz.i32 v0
  v4 = const.i32 0
  branch v3, b2(v4), b1(v2, v4)
b1(v5: i32, v6: i32):
  loop_header 0 pc=0 []
  v7 = sub.i32 v0, v1
  v8 = call @f(v7)
  v9 = add.i32 v6, v8
  v10 = add.i32 v9, v1
  v11 = sub.i32 v5, v1
  branch v11, b1(v11, v10), b2(v10)
b2(v12: i32):
  return v12
}
)");
  SiteProbeRequest r = everything();
  r.loops.records = 1'000'000;
  Probed p(module, r);
  for (uint64_t depth = 0; depth < 7; ++depth) p.run(0, {depth});
  p.check();
  auto words = p.loop(0, 0);
  EXPECT_EQ(words[2], words[0]);
  EXPECT_EQ(words[3], words[1]);
  auto body = p.loop(0, 1);
  EXPECT_EQ(body[2], body[0]);
  EXPECT_EQ(p.timer.losses().stale, 0u);
}

// ---- Copies that change -------------------------------------------------------------------------

// Executions that are not seen from entry to exit are not timed, and nothing else goes wrong.
TEST(LoopProbes, bursts_never_time_what_they_saw_a_part_of) {
  jit::Module module = parse(kNest);
  Probed p(module, everything(), Use::kToAndFro);
  for (uint64_t inner : {1, 3, 77, 80, 99}) p.run(0, {5, inner});
  EXPECT_GT(p.compiled.transfers(), 100u);
  auto outer = p.loop(0, 0);
  EXPECT_EQ(outer[0], 0u);  // always entered from the plain copy
  EXPECT_EQ(outer[2], 0u);
  for (uint32_t l = 0; l < 3; ++l) {
    auto words = p.loop(0, l);
    const Oracle::Loop& o = p.oracle.loops[{0, l}];
    EXPECT_LE(words[0], o.entries);
    EXPECT_LE(words[1], o.iterations);
    EXPECT_LE(words[2], words[0]);
    EXPECT_LE(words[3], words[1]);
  }
}

// Values that only probes need keep more of the instrumented frame alive than the plain copy has.
TEST(SiteProbes, a_larger_instrumented_frame_is_taken_on_arrival) {
  std::string text = "func @g(i64) -> i64 {\nb0(v0: i64):\n  return v0\n}\n";
  text += "func @f(i64) -> i64 {\nb0(v0: i64):\n  v1 = const.i64 1\n  jump b1(v0, v0)\n";
  text += "b1(v2: i64, v3: i64):\n  loop_header 0 pc=0 []\n  v4 = sub.i64 v2, v1\n";
  for (int i = 0; i < 60; ++i) {
    text += "  v" + std::to_string(100 + i) + " = mul.i64 v2, v" +
            std::to_string(i == 0 ? 3 : 99 + i) + "\n";
  }
  text += "  v5 = call @g(v4)\n";
  for (int i = 0; i < 60; ++i) text += "  probe value v" + std::to_string(100 + i) + "\n";
  text += "  v6 = add.i64 v3, v5\n  branch v4, b1(v4, v6), b2\nb2:\n  return v6\n}\n";
  std::string fixed = text;
  size_t at = fixed.find("  branch v4");
  fixed.insert(at, "  v7 = eqz.i64 v4\n");
  fixed.replace(fixed.find("branch v4, b1(v4, v6), b2"), 25, "branch v7, b2, b1(v4, v6)");
  jit::Module module = parse(fixed);
  for (Use use : {Use::kInstrumented, Use::kToAndFro}) {
    Probed p(module, everything(), use);
    uint32_t plain = p.compiled.code(1, Copy::kPlain).tables().frame_size;
    EXPECT_GT(p.compiled.code(1, Copy::kInstrumented).tables().frame_size, plain);
    for (uint64_t n : {1, 2, 50, 200}) p.run(1, {n});
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
  for (uint64_t seed = 1; seed <= 120 && !::testing::Test::HasFailure(); ++seed) {
    RandomSites r(seed);
    events += r.compare(Use::kInstrumented, seed % 2 == 0);
    r.compare(Use::kToAndFro, false);
  }
  EXPECT_GT(events, 2'000u);
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

// Emits void(const Registers* in, Registers* out, uint64_t* slab): a probe's call with every
// register live.
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
      call(&in, &out, slab);
      ASSERT_EQ(std::memcmp(&in, &out, sizeof in), 0) << "routine " << n << " call " << i;
    }
  }
  EXPECT_EQ(ring->pushed(), 2000u);
  timer.unwind(UINT64_MAX);
}

std::string listing_around(const jit::Code& c, const std::string& last, size_t lines) {
  std::string text = disassemble(c.base(), c.size());
  size_t end = text.find(last);
  EXPECT_NE(end, std::string::npos);
  size_t begin = end;
  for (size_t n = 0; n < lines; ++n) begin = text.rfind('\n', begin - 2) + 1;
  return text.substr(begin, end - begin);
}

// The instruction budget of each fast path: a change here is a change of what sampling costs.
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
  jit::Module nest = parse(kNest);
  SiteProbeRequest loops;
  loops.loops = {.loops = true, .records = 100};
  CodeMachine n;
  BaselineModule timed(n, nest, Use::kInstrumented, planner(loops, false));
  std::string text =
      listing_around(timed.code(0, Copy::kInstrumented), "mov r11, qword ptr fs:[*]\ninc", 6);
  EXPECT_NE(text.find(R"(mov r11, qword ptr [rbp-0x08]
inc qword ptr [r11]
cmp dword ptr [r11+0x40], 0x64
jb *
)"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace uptier::test
