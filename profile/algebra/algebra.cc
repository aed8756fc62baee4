#include "profile/algebra/algebra.h"

#include <algorithm>
#include <functional>

#include "profile/base/numbers.h"
#include "profile/data/inlined.h"
#include "profile/data/schema.h"
#include "profile/data/slot_sums.h"

namespace uptier::profile {
namespace {

bool is_empty(const MethodProfile& m) {
  const auto none = [](uint64_t count) { return count == 0; };
  return m.calls == 0 && m.iterations == 0 && m.tables.empty() &&
         std::ranges::all_of(m.counts, none) && std::ranges::all_of(m.estimates, none);
}

// Returns the profile of a method's code with this hash, or null.
MethodProfile* find_code(Profile& profile, const MethodKey& key, uint64_t cfg_hash) {
  const auto at = profile.methods.find(key);
  if (at == profile.methods.end()) return nullptr;
  if (at->second.schema.cfg_hash == cfg_hash) return &at->second;
  const auto other = profile.other_code.find({key, cfg_hash});
  return other == profile.other_code.end() ? nullptr : &other->second;
}

// A slot that only `what` has is missing as a whole.
void take_off(MethodProfile& kept, const MethodProfile& what, uint64_t& missing) {
  if (!kept.check().ok() || !what.check().ok()) return;
  for (const Slot& slot : what.schema.slots) {
    const std::span<const Word> words = words_of(slot.kind);
    const Slot* to = kept.schema.find(slot.kind, slot.site);
    if (to == nullptr) {
      ++missing;
      continue;
    }
    profile::take_off(words, &kept.counts[to->word], &what.counts[slot.word], missing);
    profile::take_off(words, &kept.estimates[to->word], &what.estimates[slot.word], missing);
    if (const Table* table = what.table(slot.kind, slot.site)) {
      profile::take_off(kept.tables[{slot.kind, slot.site}], *table, missing);
    }
  }
  std::erase_if(kept.tables, [](const auto& item) { return item.second.empty(); });
  profile::take_off(kept.calls, what.calls, missing);
  profile::take_off(kept.sampled_calls, what.sampled_calls, missing);
  profile::take_off(kept.iterations, what.iterations, missing);
  profile::take_off(kept.bursts, what.bursts, missing);
  profile::take_off(kept.weight_squares, what.weight_squares, missing);
}

// Removes other code of the methods that were removed.
void leave_known(Profile& profile) {
  std::erase_if(profile.other_code,
                [&](const auto& item) { return !profile.methods.contains(item.first.first); });
}

}  // namespace

uint64_t subtract(Profile& from, const Profile& what) {
  uint64_t missing = 0;
  const auto take = [&](const MethodKey& key, const MethodProfile& method) {
    MethodProfile* kept = find_code(from, key, method.schema.cfg_hash);
    if (kept != nullptr) take_off(*kept, method, missing);
  };
  for (const auto& [key, method] : what.methods) take(key, method);
  for (const auto& [at, method] : what.other_code) take(at.first, method);
  return missing + take_off(from.inlined, what.inlined);
}

uint64_t subtract(CallProfile& from, const CallProfile& what) {
  uint64_t missing = 0;
  for (const auto& [call, count] : what.graph) take_off(from.graph[call], count, missing);
  for (const auto& [key, call] : what.first) {
    take_off(from.first[key].positions, call.positions, missing);
    take_off(from.first[key].runs, call.runs, missing);
  }
  missing += from.time.subtract(what.time);
  std::erase_if(from.graph, [](const auto& item) { return item.second == 0; });
  std::erase_if(from.first, [](const auto& item) { return item.second == FirstCall{}; });
  return missing;
}

void restrict_to(CallProfile& calls, const Profile& profile) {
  const auto known = [&](const MethodKey& key) { return profile.find(key) != nullptr; };
  std::erase_if(calls.shapes, [&](const auto& item) {
    const MethodProfile* m = profile.find(item.first);
    return m == nullptr || m->schema.cfg_hash != item.second.cfg_hash;
  });
  std::erase_if(calls.graph, [&](const auto& item) {
    return !known(item.first.first) || !known(item.first.second);
  });
  std::erase_if(calls.first, [&](const auto& item) { return !known(item.first); });
  calls.time = {};  // paths lead through other methods
}

long double executions(const MethodProfile& method) {
  long double blocks = 0, edges = 0;
  for (const Slot& slot : method.schema.slots) {
    if (slot.word >= method.estimates.size()) break;
    if (slot.kind == SlotKind::kBlock) blocks += method.estimates[slot.word];
    if (slot.kind == SlotKind::kEdge) edges += method.estimates[slot.word];
  }
  return blocks > 0 ? blocks : edges;
}

Profile top(const Profile& profile, size_t n) {
  std::vector<std::pair<long double, const MethodProfile*>> order;
  for (const auto& [key, method] : profile.methods) order.emplace_back(executions(method), &method);
  std::ranges::stable_sort(order, std::greater<>{}, [](const auto& item) { return item.first; });
  order.resize(std::min(order.size(), n));
  Profile result;
  for (const auto& [mass, method] : order) result.methods.emplace(method->key, *method);
  for (const auto& [key, body] : profile.inlined) {
    if (result.methods.contains(key.root)) result.inlined.emplace(key, body);
  }
  for (const auto& [at, method] : profile.other_code) {
    if (result.methods.contains(at.first)) result.other_code.emplace(at, method);
  }
  return result;
}

uint64_t without_empty(Profile& profile) {
  // An empty method is kept if it has other code: it tells which code is current.
  std::erase_if(profile.other_code, [](const auto& item) { return is_empty(item.second); });
  return std::erase_if(profile.methods, [&](const auto& item) {
    const auto at = profile.other_code.lower_bound({item.first, 0});
    const bool alone = at == profile.other_code.end() || at->first.first != item.first;
    return alone && is_empty(item.second);
  });
}

uint64_t leave(Profile& profile, const std::function<bool(const MethodProfile&)>& wanted) {
  const uint64_t went =
      std::erase_if(profile.methods, [&](const auto& item) { return !wanted(item.second); });
  std::erase_if(profile.inlined,
                [&](const auto& item) { return !profile.methods.contains(item.first.root); });
  leave_known(profile);
  return went;
}

Summary summarize(const Profile& profile, std::span<const double> cutoffs) {
  Summary summary;
  std::vector<uint64_t> counts;
  summary.methods = profile.methods.size();
  for (const auto& [key, method] : profile.methods) {
    for (const Slot& slot : method.schema.slots) {
      if (slot.kind != SlotKind::kBlock || slot.word >= method.estimates.size()) continue;
      ++summary.sites;
      const uint64_t count = method.estimates[slot.word];
      if (count != 0) counts.push_back(count);
      summary.total += count;
    }
  }
  std::ranges::sort(counts, std::greater<>{});
  summary.seen = counts.size();
  summary.greatest = counts.empty() ? 0 : counts.front();
  long double sum = 0;
  size_t taken = 0;
  for (const double cutoff : cutoffs) {
    while (taken < counts.size() && (taken == 0 || sum < cutoff * summary.total)) {
      sum += counts[taken++];
    }
    summary.percentiles.push_back({cutoff, taken == 0 ? 0 : counts[taken - 1], taken});
  }
  return summary;
}

}  // namespace uptier::profile
