// Sums are long double: 64 bits of mantissa keep the share of a single count apart in sums of up to
// 2^64, and sums of many counts of 2^64-1 do not overflow.
#include <algorithm>
#include <set>

#include "uptier/profile.h"

namespace uptier {
namespace {

using Sum = long double;

double share(Sum part, Sum whole) {
  return whole == 0 ? 0 : static_cast<double>(std::min<Sum>(part / whole, 1));
}

// What two sides have in common, if `shared` is the sum of min(a_i / A, b_i / B).
double alike(Sum shared, Sum a, Sum b) {
  if (a == 0 && b == 0) return 1;
  return static_cast<double>(std::min<Sum>(shared, 1));
}

// A method's counts on both sides; null where a side has none of it.
struct Pair {
  const MethodProfile* a;
  const MethodProfile* b;

  bool comparable() const { return a != nullptr && b != nullptr && a->schema == b->schema; }
};

// Selects the slots of one kind, or of all.
using Filter = std::optional<SlotKind>;

Sum total(const MethodProfile* method, Filter kind) {
  Sum sum = 0;
  if (method == nullptr) return sum;
  for (const Slot& slot : method->schema.slots) {
    const bool counted = (!kind || *kind == slot.kind) && slot.word < method->counts.size();
    if (counted) sum += method->counts[slot.word];
  }
  return sum;
}

Sum shared_mass(const Pair& pair, Filter kind, Sum total_a, Sum total_b) {
  Sum sum = 0;
  if (!pair.comparable() || total_a == 0 || total_b == 0) return sum;
  const size_t words = std::min(pair.a->counts.size(), pair.b->counts.size());
  for (const Slot& slot : pair.a->schema.slots) {
    const bool counted = (!kind || *kind == slot.kind) && slot.word < words;
    if (!counted) continue;
    sum += std::min(pair.a->counts[slot.word] / total_a, pair.b->counts[slot.word] / total_b);
  }
  return sum;
}

std::map<MethodKey, Pair> pair_up(const Profile& a, const Profile& b) {
  std::map<MethodKey, Pair> pairs;
  for (const auto& [key, method] : a.methods) pairs[key].a = &method;
  for (const auto& [key, method] : b.methods) pairs[key].b = &method;
  return pairs;
}

Overlap overlap_of(const std::map<MethodKey, Pair>& pairs, Filter kind) {
  Sum all_a = 0, all_b = 0;
  Sum only_a = 0, only_b = 0;
  Sum mismatched_a = 0, mismatched_b = 0;
  for (const auto& [key, pair] : pairs) {
    const Sum a = total(pair.a, kind), b = total(pair.b, kind);
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

std::set<SlotKind> kinds_of(const std::map<MethodKey, Pair>& pairs) {
  std::set<SlotKind> kinds;
  for (const auto& [key, pair] : pairs) {
    for (const MethodProfile* method : {pair.a, pair.b}) {
      if (method == nullptr) continue;
      for (const Slot& slot : method->schema.slots) kinds.insert(slot.kind);
    }
  }
  return kinds;
}

MethodOverlap method_overlap(const MethodKey& key, const Pair& pair, Sum all_a, Sum all_b) {
  MethodOverlap result;
  const Sum a = total(pair.a, {}), b = total(pair.b, {});
  result.key = key;
  result.name = std::max(pair.a ? pair.a->name : "", pair.b ? pair.b->name : "");
  result.mismatched = pair.a != nullptr && pair.b != nullptr && !pair.comparable();
  result.value = pair.comparable() ? alike(shared_mass(pair, {}, a, b), a, b) : 0;
  result.share_a = share(a, all_a);
  result.share_b = share(b, all_b);
  return result;
}

}  // namespace

OverlapReport compare(const Profile& a, const Profile& b) {
  const std::map<MethodKey, Pair> pairs = pair_up(a, b);
  OverlapReport report;
  report.program = overlap_of(pairs, {});
  for (const SlotKind kind : kinds_of(pairs)) {
    report.kinds.push_back({kind, overlap_of(pairs, kind)});
  }
  Sum all_a = 0, all_b = 0;
  for (const auto& [key, pair] : pairs) {
    all_a += total(pair.a, {});
    all_b += total(pair.b, {});
  }
  for (const auto& [key, pair] : pairs) {
    report.methods.push_back(method_overlap(key, pair, all_a, all_b));
  }
  return report;
}

double overlap(const Profile& a, const Profile& b) { return overlap_of(pair_up(a, b), {}).value; }

}  // namespace uptier
