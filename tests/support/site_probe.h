// Compares the probes of a module's instrumented copies with the interpreter's observer.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "jit/frontend/select_probes.h"
#include "jit/probes/plan_sites.h"
#include "jit/x64/code_buffer.h"
#include "sampler/log_ring.h"
#include "sampler/loop_timer.h"
#include "tests/support/baseline_module.h"
#include "tests/support/random_ir.h"

namespace uptier::test {

using jit::SiteCounts;
using jit::SiteProbeRequest;
using sampler::TableEntry;
using Ran = CodeMachine::Ran;
using Use = BaselineModule::Use;

__extension__ using Int128 = __int128;

constexpr uint32_t kTop = 16;

// Probes of every kind, with values of every type. Some of the values have no other use, and some
// are defined far above.
inline constexpr const char* kEveryKind = R"(
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

inline SiteProbeRequest everything() {
  SiteProbeRequest r{.call_targets = true, .host_probes = true, .top = kTop};
  r.loops = {.loops = true, .function = true, .records = 5};
  return r;
}

// Plans probes; with `blocks`, the blocks are counted too, in the first words.
inline BaselineModule::MakePlan planner(const SiteProbeRequest& r, bool blocks = true) {
  return [r, blocks](const jit::Function& f) {
    jit::ProbePlan plan;
    for (uint32_t b = 0; blocks && b < f.block_sites; ++b) plan.blocks.push_back(8 * b);
    plan.bytes = static_cast<uint32_t>(8 * plan.blocks.size());
    plan_sites(f, r, plan);
    return plan;
  };
}

// The values that the interpreter saw at one site, in order.
class Oracle : public jit::InterpretObserver {
 public:
  struct Loop {
    uint64_t entries = 0, left = 0, iterations = 0;
  };

  void probe(MethodId m, const jit::Inst& i, uint64_t seen) override {
    if (jit::probe_kind(i) == ProbeKind::kCallTarget) return target(m, i.aux, seen);
    if (jit::counts_turns(i)) {
      uint64_t now = seen != 0, before = std::exchange(last_turn[{m.index(), i.aux}], now);
      seen = 2 * before + now;
    }
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

  // The interpreter itself counts blocks.
  void add_blocks(const jit::Interpreter& i, const jit::Module& module) {
    for (uint32_t m = 0; m < module.functions.size(); ++m) {
      auto counts = i.site_counts(MethodId(m));
      blocks[m].resize(module.functions[m].block_sites);
      for (size_t b = 0; !counts.empty() && b < blocks[m].size(); ++b) blocks[m][b] += counts[b];
    }
  }

  std::map<uint32_t, std::vector<uint64_t>> blocks;
  std::map<std::pair<uint32_t, SiteId>, std::vector<uint64_t>> values;
  std::map<std::pair<uint32_t, SiteId>, uint64_t> last_turn;  // of a condition: its last value, 0
                                                              // or 1
  std::map<std::pair<uint32_t, uint32_t>, Loop> loops;
  std::vector<sampler::LogRecord> log;
};

inline std::vector<TableEntry> table_of(const std::vector<uint64_t>& seen) {
  std::map<uint64_t, uint64_t> counts;
  for (uint64_t v : seen) ++counts[v];
  std::vector<TableEntry> out;
  for (auto [key, count] : counts) out.push_back({key, count});
  std::stable_sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.count > b.count; });
  return out;
}

inline std::vector<uint64_t> summary_of(const std::vector<uint64_t>& seen) {
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

// Returns the exact counts. For a table with more values than entries, returns only the words that
// stay exact.
inline SiteCounts expected_counts(ProbeKind kind, const std::vector<uint64_t>& seen,
                                  uint64_t lost) {
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

// A module in compiled code, compared with the interpreter.
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

  // Runs both; `methods` lists the indices of arguments that are method numbers.
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
    // Maps target addresses to methods, sorted as tables are; an address that is no method counts
    // as other.
    std::vector<TableEntry> methods;
    for (const TableEntry& e : c.entries) {
      MethodId callee = machine.stubs->method_of(reinterpret_cast<const void*>(e.key));
      if (callee.valid()) {
        methods.push_back({callee.index(), e.count});
      } else {
        c.words[0] += e.count;
      }
    }
    std::ranges::sort(methods, [](const TableEntry& a, const TableEntry& b) {
      return a.count != b.count ? a.count > b.count : a.key < b.key;
    });
    c.entries = std::move(methods);
    return c;
  }
  auto loop(uint32_t method, uint32_t l) {
    return loop_counts(compiled.plan(method), LoopId(l), compiled.slab(method));
  }

  // Compares every site and loop; returns the number of events.
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
      // An execution that a trap cut short while it was timed does not count.
      EXPECT_LE(words[0], o.entries) << where;
      EXPECT_GE(words[0], o.left) << where;
      EXPECT_EQ(words[1], l == f.loop_count ? words[0] : o.iterations) << where;
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

inline jit::Module parse(const std::string& text) {
  auto m = jit::parse_module(text, {"test", {}});
  if (!m.ok()) throw std::runtime_error(m.error().message);
  for (const jit::Function& f : m->functions) {
    if (Status ok = jit::verify(f); !ok.ok()) throw std::runtime_error(ok.error().message);
  }
  return std::move(m).value();
}

// Returns the last `lines` lines of the listing before the first occurrence of `last`.
inline std::string listing_around(const jit::Code& c, const std::string& last, size_t lines) {
  std::string text = disassemble(c.base(), c.size());
  size_t end = text.find(last);
  EXPECT_NE(end, std::string::npos);
  size_t begin = end;
  for (size_t n = 0; n < lines; ++n) begin = text.rfind('\n', begin - 2) + 1;
  return text.substr(begin, end - begin);
}

}  // namespace uptier::test
