#include "tiering/observe/settled.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "profile/algebra/rake.h"
#include "profile/base/numbers.h"
#include "tiering/observe/ran_so_far.h"
#include "tiering/observe/stream_sums.h"

namespace uptier::tiering {
namespace {

constexpr int kFitRounds = 12;
constexpr double kUnseenWay = 1e-3;  // of the executions of its block
// Copies are used once they have seen kLeastSeen executions of a block; the share that the code was
// compiled with counts like kSeenBefore executions.
constexpr double kLeastSeen = 16;
constexpr double kSeenBefore = 32;

uint64_t whole(double n) {
  return n >= 0x1p63 ? uint64_t{1} << 63 : static_cast<uint64_t>(n + 0.5);
}

// The estimates of a table's entries, and of its `other`.
struct TableSum {
  std::map<TableKey, double> of;
  double other = 0;

  double sum() const {
    double all = other;
    for (const auto& [key, n] : of) all += n;
    return all;
  }
};

void add(const Table* table, uint64_t other, TableSum& to) {
  to.other += static_cast<double>(other);
  if (table == nullptr) return;
  for (const auto& [key, entry] : *table) to.of[key] += static_cast<double>(entry.estimate);
}

// Writes tables for the given numbers of executions of two kinds of code. If one kind was not
// sampled, its executions are assumed to be like those of the other.
void write(const TableSum& one, double ran_one, const TableSum& two, double ran_two, Table& table,
           uint64_t& other) {
  double sum_one = one.sum(), sum_two = two.sum();
  if (sum_one <= 0) ran_two += std::exchange(ran_one, 0);
  if (sum_two <= 0) ran_one += std::exchange(ran_two, 0);
  double times_one = sum_one > 0 ? ran_one / sum_one : 0;
  double times_two = sum_two > 0 ? ran_two / sum_two : 0;
  for (auto& [key, entry] : table) {
    auto at = [&](const TableSum& t) {
      auto found = t.of.find(key);
      return found == t.of.end() ? 0 : found->second;
    };
    entry.estimate = std::max(entry.count, whole(at(one) * times_one + at(two) * times_two));
  }
  other = whole(one.other * times_one + two.other * times_two);
}

}  // namespace

void fit_edges(std::span<const profile::FlowEdge> graph, std::span<const double> blocks,
               std::vector<double>& edges) {
  std::vector<double> out(blocks.size() + 1), in(blocks.size() + 1);
  auto sum = [&](std::vector<double>& sums, auto end) {
    std::ranges::fill(sums, 0);
    for (size_t e = 0; e < edges.size(); ++e) sums[end(graph[e])] += edges[e];
  };
  auto from = [](const profile::FlowEdge& e) { return e.from; };
  auto to = [](const profile::FlowEdge& e) { return e.to; };
  auto scale = [&](std::vector<double>& sums, auto end) {
    sum(sums, end);
    for (size_t e = 0; e < edges.size(); ++e) {
      uint32_t v = end(graph[e]);
      if (v == 0 || sums[v] <= 0) continue;
      edges[e] *= blocks[v - 1] / sums[v];
    }
  };
  // An edge that was never seen may be taken by now, so it gets a small share. If a block has run
  // and nothing is known about its branch, every edge is equally likely.
  sum(out, from);
  for (size_t e = 0; e < edges.size(); ++e) {
    uint32_t v = graph[e].from;
    if (v == 0 || blocks[v - 1] <= 0) continue;
    edges[e] = out[v] > 0 ? std::max(edges[e], kUnseenWay * out[v]) : 1;
  }
  for (int round = 0; round < kFitRounds; ++round) {
    scale(in, to);
    scale(out, from);
  }
}

profile::Observed Settled::baseline_part(const Method& m, uint64_t calls) const {
  const Schema& schema = m.probes->schema();
  profile::Observed sum;
  sum.counts.resize(schema.words());
  sum.estimates.resize(schema.words());
  double covered = 0;
  uint64_t iterations = 0;
  for (const auto& [thread, s] : m.flushed->streams) {
    iterations += s.iterations;
    if ((thread & kOptimizedStream) != 0) continue;
    covered += s.coverage.covered;
    for (size_t w = 0; w < std::min(sum.estimates.size(), s.seen.estimates.size()); ++w) {
      profile::add_saturating(sum.estimates[w], s.seen.estimates[w]);
    }
  }
  if (!is_brought_to_all(live_) || m.probes->counts_by_calls()) return sum;
  double slots = static_cast<double>(iterations) / static_cast<double>(slot_of(m, live_));
  double there_were = static_cast<double>(calls) + slots;
  double rest = covered > 0 && there_were > 0 ? there_were / covered : 1;
  profile::rake(schema, m.probes->draws(), sum, calls, iterations, rest);
  return sum;
}

namespace {

// Counts of one block in instrumented copies of optimized code.
struct Seen {
  double count = 0, estimate = 0;
};

// Returns nothing for a block that the copies do not count.
std::optional<Seen> seen_of(const Method& m, const TalliedSum::Place& at) {
  if (!at.path.empty()) {
    auto body = m.flushed->inlined_seen.find(at.path);
    if (body == m.flushed->inlined_seen.end()) return std::nullopt;
    auto block = body->second.blocks.find(at.site);
    if (block == body->second.blocks.end()) return std::nullopt;
    return Seen{static_cast<double>(block->second.count),
                static_cast<double>(block->second.estimate)};
  }
  Seen s;
  for (const auto& [thread, stream] : m.flushed->streams) {
    if ((thread & kOptimizedStream) == 0 || at.site > stream.seen.estimates.size()) continue;
    s.count += static_cast<double>(stream.seen.counts[at.site - 1]);
    s.estimate += static_cast<double>(stream.seen.estimates[at.site - 1]);
  }
  const std::vector<bool>& counted = m.optimizing->windows.observed;
  bool known = s.count > 0 || (at.site <= counted.size() && counted[at.site - 1]);
  return known ? std::optional(s) : std::nullopt;
}

}  // namespace

namespace {

// The executions of the counted block beside a block, in plain code and in copies. For a block of an
// inlined body, only in code with the body at this place.
struct Beside {
  double ran = 0, seen = 0, elsewhere = 0;
};

Beside beside_of(const Method& m, const TalliedSum& sum, const jit::InlinePath& path,
                 const TalliedSum::Block& b, const Seen& seen) {
  auto body = m.flushed->inlined_seen.find(path);
  if (!path.empty() && b.beside.path.empty() && body != m.flushed->inlined_seen.end()) {
    const std::vector<double>& beside = body->second.beside;
    double estimate = b.beside.site <= beside.size() ? beside[b.beside.site - 1] : 0;
    return {b.beside_ran, estimate, b.elsewhere};
  }
  const TalliedSum::Block* all = sum.find(b.beside);
  return {all != nullptr ? all->executions : 0, seen.estimate, 0};
}

}  // namespace

// A share is the frequency of a block relative to a counted one, from the time of compilation.
// Copies that ran since know it better, in proportion to the executions they have seen.
void Settled::refine(const Method& m, TalliedSum& sum) const {
  for (auto& [path, blocks] : sum.blocks) {
    for (SiteId site = 1; site <= blocks.size(); ++site) {
      TalliedSum::Block& b = blocks[site - 1];
      if (b.exact >= 0.999 * b.executions || b.beside.site == 0) continue;
      std::optional<Seen> ran = seen_of(m, b.beside), own = seen_of(m, {path, site});
      if (!ran || !own || ran->count < kLeastSeen) continue;
      Beside beside = beside_of(m, sum, path, b, *ran);
      if (beside.seen <= 0) continue;
      double now = own->estimate * beside.ran / beside.seen + beside.elsewhere;
      b.executions = (now * ran->count + b.executions * kSeenBefore) / (ran->count + kSeenBefore);
    }
  }
}

// Instrumented copies of optimized code add nothing to words. Stubs count their calls, but no word counts
// their iterations: these are in the copies' own counters.
void Settled::add_copies(const Method& m, TalliedSum& sum) const {
  for (auto& [path, blocks] : sum.blocks) {
    for (SiteId site = 1; site <= blocks.size(); ++site) {
      TalliedSum::Block& b = blocks[site - 1];
      if (b.by_loops <= 0 || b.executions <= 0) continue;
      if (std::optional<Seen> in_copies = seen_of(m, {path, site})) {
        b.executions += in_copies->count * std::min(b.by_loops / b.executions, 1.0);
      }
    }
  }
}

TalliedSum Settled::optimized_part(const Method& m) const {
  TalliedSum sum = tallied_.sum_of(m);
  refine(m, sum);
  add_copies(m, sum);
  return sum;
}

MethodProfile Settled::profile_of(const Method& m) const {
  MethodProfile p = estimates_.profile_of(m);
  p.behind = m.ran_uncounted;
  TalliedSum optimized = optimized_part(m);
  if (!optimized.blocks.empty() && !p.schema.slots.empty()) {
    Executions ran = settle_blocks(m, optimized, p);
    settle_edges(m, ran, p);
    settle_targets(m, ran, p);
  }
  guess(m, p);
  return p;
}

void Settled::guess(const Method& m, MethodProfile& p) const {
  const jit::StaticShape& shape = m.shape->static_shape;
  size_t blocks = shape.per_call.size();
  auto is_seen = [&](const Slot& s) {
    return s.kind == SlotKind::kBlock && p.estimates[s.word] != 0;
  };
  if (blocks == 0 || std::ranges::any_of(p.schema.slots, is_seen)) return;
  p.calls = std::max(p.calls, calls_so_far(m, tallied_.words().threads()));
  if (p.calls == 0 && p.iterations == 0) return;
  if (p.schema.slots.empty()) {
    p.schema = Schema::block_schema(static_cast<uint32_t>(blocks), m.shape->cfg_hash);
    p.counts.assign(blocks, 0);
    p.estimates.assign(blocks, 0);
  }
  auto calls = static_cast<double>(p.calls), rounds = static_cast<double>(p.iterations);
  Executions ran{std::vector<double>(blocks), {}};
  for (size_t b = 0; b < blocks; ++b) {
    bool by_rounds = shape.in_loop[b] && rounds > 0 && shape.headers_per_call > 0;
    double times = by_rounds ? rounds / shape.headers_per_call : calls;
    ran.baseline[b] = b == 0 ? calls : times * shape.per_call[b];
  }
  ran.all = ran.baseline;
  for (const Slot& s : p.schema.slots) {
    bool known = s.kind == SlotKind::kBlock && s.site <= blocks;
    if (known) p.estimates[s.word] = whole(ran.all[s.site - 1]);
  }
  if (!m.probes->schema().slots.empty()) settle_edges(m, ran, p);
  p.guessed_calls = p.calls;
}

Settled::Executions Settled::settle_blocks(const Method& m, const TalliedSum& optimized,
                                           MethodProfile& p) const {
  static const std::vector<TalliedSum::Block> kNone;
  auto own = optimized.blocks.find({});
  const std::vector<TalliedSum::Block>& ran = own == optimized.blocks.end() ? kNone : own->second;
  uint64_t in_baseline = p.calls - std::min(whole(optimized.calls), p.calls);
  profile::Observed base = baseline_part(m, in_baseline);
  std::span<const profile::Draw> draws = m.probes->draws();
  auto by_calls = [&](size_t slot) {
    return slot < draws.size() && draws[slot] == profile::Draw::kCall;
  };
  size_t blocks = m.shape->block_weights.size();
  Executions e{std::vector<double>(blocks), std::vector<double>(blocks)};
  bool calls_seen = blocks != 0 && base.estimates[0] != 0;
  for (size_t i = 0; i < p.schema.slots.size(); ++i) {
    const Slot& slot = p.schema.slots[i];
    if (slot.kind != SlotKind::kBlock) continue;
    size_t b = slot.site - 1;
    double in_optimized = b < ran.size() ? ran[b].executions : 0;
    e.baseline[b] = static_cast<double>(base.estimates[slot.word]);
    // No baseline call was sampled, so baseline code is assumed to behave like optimized code.
    if (!calls_seen && by_calls(i) && optimized.calls > 0) {
      e.baseline[b] = in_optimized / optimized.calls * static_cast<double>(in_baseline);
    }
    e.all[b] = e.baseline[b] + in_optimized;
    if (slot.site == 1 && by_calls(i)) e.all[b] = static_cast<double>(p.calls);
    p.estimates[slot.word] = std::max(p.counts[slot.word], whole(e.all[b]));
  }
  return e;
}

namespace {

// Returns the edge counts from samples of baseline code, by edge; in any unit.
std::vector<double> edges_seen(const Method& m) {
  std::vector<double> edges(m.probes->flow_edges().size());
  for (const Slot& slot : m.probes->schema().slots) {
    if (slot.kind != SlotKind::kEdge) continue;
    for (const auto& [thread, s] : m.flushed->streams) {
      bool baseline = (thread & kOptimizedStream) == 0 && slot.word < s.seen.estimates.size();
      if (baseline) edges[slot.site - 1] += static_cast<double>(s.seen.estimates[slot.word]);
    }
  }
  return edges;
}

}  // namespace

void Settled::settle_edges(const Method& m, const Executions& ran, MethodProfile& p) const {
  std::vector<double> edges = edges_seen(m);
  fit_edges(m.probes->flow_edges(), ran.all, edges);
  for (const Slot& slot : p.schema.slots) {
    if (slot.kind != SlotKind::kEdge) continue;
    p.estimates[slot.word] = std::max(p.counts[slot.word], whole(edges[slot.site - 1]));
  }
}

void Settled::settle_targets(const Method& m, const Executions& ran, MethodProfile& p) const {
  std::span<const SiteId> block_of = m.probes->blocks_of_slots();
  assert(block_of.size() == p.schema.slots.size());
  for (size_t i = 0; i < p.schema.slots.size(); ++i) {
    const Slot& slot = p.schema.slots[i];
    auto table = p.tables.find({slot.kind, slot.site});
    bool settles = slot.kind == SlotKind::kCallTarget && table != p.tables.end();
    if (!settles || block_of[i] == 0) continue;
    TableSum baseline, in_copies;
    for (const auto& [thread, s] : m.flushed->streams) {
      auto of_stream = s.seen.tables.find({slot.kind, slot.site});
      bool any = of_stream != s.seen.tables.end();
      uint64_t other = slot.word < s.seen.estimates.size() ? s.seen.estimates[slot.word] : 0;
      add(any ? &of_stream->second : nullptr, other,
          (thread & kOptimizedStream) != 0 ? in_copies : baseline);
    }
    size_t b = block_of[i] - 1;
    write(baseline, ran.baseline[b], in_copies, ran.all[b] - ran.baseline[b], table->second,
          p.estimates[slot.word + slot_word::kTargetOther]);
  }
}

namespace {

// Returns the executions of a body's blocks, by site - 1.
std::vector<double> executions_of(const InlinedBody& body, size_t blocks) {
  std::vector<double> executions(blocks);
  for (const auto& [site, b] : body.blocks) {
    if (site <= blocks) executions[site - 1] = static_cast<double>(b.estimate);
  }
  return executions;
}

void add_edges(const Method& callee, std::span<const double> blocks, InlinedBody& body)
    UPTIER_REQUIRES(state_lock) {
  std::vector<double> edges = edges_seen(callee);
  fit_edges(callee.probes->flow_edges(), blocks, edges);
  for (size_t e = 0; e < edges.size(); ++e) {
    uint64_t n = whole(edges[e]);
    if (n == 0) continue;
    body.sites[{SlotKind::kEdge, static_cast<SiteId>(e + 1)}] = {{0}, {n}, {}, 1};
  }
}

}  // namespace

void settle_inlined_blocks(std::span<const TalliedSum::Block> ran,
                           std::map<SiteId, InlinedBlock>& blocks) {
  double known = 0, seen = 0;
  for (const auto& [site, b] : blocks) {
    if (site > ran.size() || ran[site - 1].executions <= 0) continue;
    known += ran[site - 1].executions;
    seen += static_cast<double>(b.estimate);
  }
  double scale = seen > 0 ? known / seen : 0;
  for (auto& [site, b] : blocks) {
    b.estimate = std::max(b.count, whole(static_cast<double>(b.estimate) * scale));
  }
  for (SiteId site = 1; site <= ran.size(); ++site) {
    uint64_t n = whole(ran[site - 1].executions);
    if (n == 0) continue;
    InlinedBlock& b = blocks[site];
    b.estimate = std::max(b.count, n);
    if (b.samples == 0) b.samples = 1;
  }
}

void Settled::settle_inlined(const Method& m, InlinedBodies& bodies) const {
  TalliedSum optimized = optimized_part(m);
  if (optimized.blocks.empty()) return;
  std::set<InlinedKey> ran;
  for (const auto& [path, blocks] : optimized.blocks) {
    if (path.empty()) continue;
    InlinedKey key{m.info.key, {}};
    InlinedBody body{{m.shape->cfg_hash}, {}, {}};
    bool known = true;
    for (const jit::InlineStep& step : path) {
      const Method* callee = directory_.method_of(step.method);
      known &= callee != nullptr && callee->has_shape();
      if (!known) break;
      key.path.push_back({step.site, callee->info.key});
      body.code.push_back(callee->shape->cfg_hash);
    }
    if (!known) continue;
    auto at = bodies.try_emplace(key, std::move(body)).first;
    ran.insert(key);
    settle_inlined_blocks(blocks, at->second.blocks);
    const Method& callee = *directory_.method_of(path.back().method);
    std::vector<double> executions = executions_of(at->second, callee.shape->block_weights.size());
    add_edges(callee, executions, at->second);
    std::span<const SiteId> block_of = callee.probes->blocks_of_slots();
    const auto& slots = callee.probes->schema().slots;
    for (auto& [kind_and_site, site] : at->second.sites) {
      if (kind_and_site.first != SlotKind::kCallTarget) continue;
      for (size_t i = 0; i < std::min(block_of.size(), slots.size()); ++i) {
        bool it = slots[i].kind == kind_and_site.first && slots[i].site == kind_and_site.second;
        if (!it || block_of[i] == 0 || block_of[i] > executions.size()) continue;
        TableSum in_copies;
        uint64_t& other = site.estimates[slot_word::kTargetOther];
        add(&site.table, other, in_copies);
        write({}, 0, in_copies, executions[block_of[i] - 1], site.table, other);
      }
    }
  }
  // Only the instrumented copy has inlined it. In other code it was called, and is counted there.
  std::erase_if(bodies, [&](const auto& item) { return !ran.contains(item.first); });
  std::erase_if(bodies, [](const auto& item) {
    return item.second.blocks.empty() && item.second.sites.empty();
  });
}

}  // namespace uptier::tiering
