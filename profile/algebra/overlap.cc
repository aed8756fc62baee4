// Sums are long double: 64 bits of mantissa resolve the share of a single count in sums of up to
// 2^64, and sums of many counts of 2^64-1 do not overflow.
#include <algorithm>
#include <set>

#include "profile/algebra/fold_inlined.h"
#include "profile/data/schema.h"

namespace uptier {
namespace {

using Sum = long double;

double share(Sum part, Sum whole) {
  return whole == 0 ? 0 : static_cast<double>(std::min<Sum>(part / whole, 1));
}

// Returns the overlap of two sides, if `shared` is the sum of min(a_i / A, b_i / B).
double alike(Sum shared, Sum a, Sum b) {
  if (a == 0 && b == 0) return 1;
  return static_cast<double>(std::min<Sum>(shared, 1));
}

// A method on both sides; null if a side does not have it.
struct MethodPair {
  const MethodProfile* a;
  const MethodProfile* b;

  bool comparable() const {
    return a != nullptr && b != nullptr && a->schema.version == b->schema.version &&
           a->schema.cfg_hash == b->schema.cfg_hash;
  }

  // Returns whether a slot is compared: a slot that only one side was asked to observe tells
  // nothing about either.
  bool counts(const Slot& slot) const {
    return !comparable() || (a->schema.find(slot.kind, slot.site) != nullptr &&
                             b->schema.find(slot.kind, slot.site) != nullptr);
  }
};

constexpr bool takes_part(SlotKind kind) {
  return kind != SlotKind::kLog && kind != SlotKind::kRange && kind != SlotKind::kGauge;
}

// Returns the compared mass in a slot's words; for a kind with a table, `other`.
Sum scalar_mass(const MethodProfile& method, const Slot& slot) {
  if (slot.kind == SlotKind::kLoop) {
    const std::optional<Estimate> cycles = method.loop_cycles(slot.site);
    return cycles ? Sum{cycles->total} : 0;
  }
  const uint32_t word = has_table(slot.kind) ? profile::other_word(slot) : slot.word;
  return word < method.estimates.size() ? method.estimates[word] : 0;
}

const Table& table_of(const MethodProfile& method, const Slot& slot) {
  static const Table kNone;
  const Table* table = has_table(slot.kind) ? method.table(slot.kind, slot.site) : nullptr;
  return table == nullptr ? kNone : *table;
}

// Returns the mass of one side of a pair.
Sum total(const MethodPair& pair, const MethodProfile* method, SlotKind kind) {
  Sum sum = 0;
  if (method == nullptr) return sum;
  const bool same = pair.comparable() && pair.a->schema == pair.b->schema;
  for (const Slot& slot : method->schema.slots) {
    if (slot.kind != kind || (!same && !pair.counts(slot))) continue;
    sum += scalar_mass(*method, slot);
    for (const auto& [key, entry] : table_of(*method, slot)) sum += entry.estimate;
  }
  return sum;
}

Sum shared_entries(const Table& a, const Table& b, Sum total_a, Sum total_b) {
  Sum sum = 0;
  for (const auto& [key, entry] : a) {
    const auto at = b.find(key);
    if (at == b.end()) continue;
    sum += std::min(entry.estimate / total_a, at->second.estimate / total_b);
  }
  return sum;
}

Sum shared_mass(const MethodPair& pair, SlotKind kind, Sum total_a, Sum total_b) {
  Sum sum = 0;
  if (!pair.comparable() || total_a == 0 || total_b == 0) return sum;
  for (const Slot& slot : pair.a->schema.slots) {
    const Slot* other = slot.kind == kind ? pair.b->schema.find(kind, slot.site) : nullptr;
    if (other == nullptr) continue;
    sum += std::min(scalar_mass(*pair.a, slot) / total_a, scalar_mass(*pair.b, *other) / total_b);
    sum += shared_entries(table_of(*pair.a, slot), table_of(*pair.b, *other), total_a, total_b);
  }
  return sum;
}

// `folded` belongs to both profiles; the pairs point into it.
std::map<MethodKey, MethodPair> pair_up(const Profile& a, const Profile& b,
                                        const profile::FoldedPair& folded) {
  std::map<MethodKey, MethodPair> pairs;
  for (const auto* methods : {&a.methods, &folded.a.methods}) {
    for (const auto& [key, method] : *methods) pairs[key].a = &method;
  }
  for (const auto* methods : {&b.methods, &folded.b.methods}) {
    for (const auto& [key, method] : *methods) pairs[key].b = &method;
  }
  return pairs;
}

Overlap overlap_of(const std::map<MethodKey, MethodPair>& pairs, SlotKind kind) {
  Sum all_a = 0, all_b = 0;
  Sum only_a = 0, only_b = 0;
  Sum mismatched_a = 0, mismatched_b = 0;
  for (const auto& [key, pair] : pairs) {
    const Sum a = total(pair, pair.a, kind), b = total(pair, pair.b, kind);
    all_a += a;
    all_b += b;
    if (pair.b == nullptr) only_a += a;
    if (pair.a == nullptr) only_b += b;
    const bool mismatched = pair.a != nullptr && pair.b != nullptr && !pair.comparable();
    mismatched_a += mismatched ? a : 0;
    mismatched_b += mismatched ? b : 0;
  }
  Sum shared = 0;
  for (const auto& [key, pair] : pairs) shared += shared_mass(pair, kind, all_a, all_b);
  return Overlap{alike(shared, all_a, all_b), share(only_a, all_a), share(only_b, all_b),
                 share(mismatched_a, all_a), share(mismatched_b, all_b)};
}

// Returns the kinds of sites that one side has.
std::set<SlotKind> kinds_of(const std::map<MethodKey, MethodPair>& pairs,
                            const MethodProfile* MethodPair::*side) {
  std::set<SlotKind> kinds;
  for (const auto& [key, pair] : pairs) {
    const MethodProfile* method = pair.*side;
    if (method == nullptr) continue;
    for (const Slot& slot : method->schema.slots) {
      if (takes_part(slot.kind)) kinds.insert(slot.kind);
    }
  }
  return kinds;
}

// Returns the sums of a and b over all methods.
std::pair<Sum, Sum> totals(const std::map<MethodKey, MethodPair>& pairs, SlotKind kind) {
  Sum all_a = 0, all_b = 0;
  for (const auto& [key, pair] : pairs) {
    all_a += total(pair, pair.a, kind);
    all_b += total(pair, pair.b, kind);
  }
  return {all_a, all_b};
}

SlotKind main_kind(const std::map<MethodKey, MethodPair>& pairs) {
  const auto [blocks_a, blocks_b] = totals(pairs, SlotKind::kBlock);
  if (blocks_a != 0 && blocks_b != 0) return SlotKind::kBlock;
  const auto [edges_a, edges_b] = totals(pairs, SlotKind::kEdge);
  return edges_a != 0 || edges_b != 0 ? SlotKind::kEdge : SlotKind::kBlock;
}

MethodOverlap method_overlap(const MethodKey& key, const MethodPair& pair, SlotKind kind, Sum all_a,
                             Sum all_b) {
  MethodOverlap result;
  const Sum a = total(pair, pair.a, kind), b = total(pair, pair.b, kind);
  result.key = key;
  result.name = std::max(pair.a ? pair.a->name : "", pair.b ? pair.b->name : "");
  result.mismatched = pair.a != nullptr && pair.b != nullptr && !pair.comparable();
  result.value = pair.comparable() ? alike(shared_mass(pair, kind, a, b), a, b) : 0;
  result.share_a = share(a, all_a);
  result.share_b = share(b, all_b);
  result.behind_a = pair.a != nullptr && pair.a->behind;
  result.behind_b = pair.b != nullptr && pair.b->behind;
  return result;
}

Sum total(const InlinedBody& body) {
  Sum sum = 0;
  for (const auto& [site, block] : body.blocks) sum += block.estimate;
  return sum;
}

Sum total(const InlinedBodies& bodies) {
  Sum sum = 0;
  for (const auto& [key, body] : bodies) sum += total(body);
  return sum;
}

// Returns the mass of bodies that the other side does not have, and of those that it has with other
// code.
std::pair<Sum, Sum> apart(const InlinedBodies& bodies, const InlinedBodies& others) {
  Sum only = 0, mismatched = 0;
  for (const auto& [key, body] : bodies) {
    const auto at = others.find(key);
    if (at == others.end()) {
      only += total(body);
    } else if (at->second.code != body.code) {
      mismatched += total(body);
    }
  }
  return {only, mismatched};
}

Sum shared_blocks(const InlinedBody& a, const InlinedBody& b, Sum total_a, Sum total_b) {
  Sum sum = 0;
  if (a.code != b.code || total_a == 0 || total_b == 0) return sum;
  for (const auto& [site, block] : a.blocks) {
    const auto at = b.blocks.find(site);
    if (at == b.blocks.end()) continue;
    sum += std::min(block.estimate / total_a, at->second.estimate / total_b);
  }
  return sum;
}

std::optional<Overlap> inlined_overlap(const InlinedBodies& a, const InlinedBodies& b) {
  if (a.empty() && b.empty()) return std::nullopt;
  const Sum all_a = total(a), all_b = total(b);
  Sum shared = 0;
  for (const auto& [key, body] : a) {
    const auto at = b.find(key);
    if (at != b.end()) shared += shared_blocks(body, at->second, all_a, all_b);
  }
  const auto [only_a, mismatched_a] = apart(a, b);
  const auto [only_b, mismatched_b] = apart(b, a);
  return Overlap{alike(shared, all_a, all_b), share(only_a, all_a), share(only_b, all_b),
                 share(mismatched_a, all_a), share(mismatched_b, all_b)};
}

}  // namespace

OverlapReport compare(const Profile& a, const Profile& b) {
  const profile::FoldedPair folded = profile::fold_both(a, b);
  const std::map<MethodKey, MethodPair> pairs = pair_up(a, b, folded);
  OverlapReport report;
  report.kind = main_kind(pairs);
  report.program = overlap_of(pairs, report.kind);
  const std::set<SlotKind> in_a = kinds_of(pairs, &MethodPair::a);
  const std::set<SlotKind> in_b = kinds_of(pairs, &MethodPair::b);
  std::set<SlotKind> kinds = in_a;
  kinds.insert(in_b.begin(), in_b.end());
  for (const SlotKind kind : kinds) {
    report.kinds.push_back(
        {kind, overlap_of(pairs, kind), in_a.contains(kind), in_b.contains(kind)});
  }
  const auto [all_a, all_b] = totals(pairs, report.kind);
  for (const auto& [key, pair] : pairs) {
    report.methods.push_back(method_overlap(key, pair, report.kind, all_a, all_b));
  }
  report.inlined = inlined_overlap(a.inlined, b.inlined);
  return report;
}

double overlap(const Profile& a, const Profile& b) {
  const profile::FoldedPair folded = profile::fold_both(a, b);
  const std::map<MethodKey, MethodPair> pairs = pair_up(a, b, folded);
  return overlap_of(pairs, main_kind(pairs)).value;
}

}  // namespace uptier
