#include "tiering/saved/known_methods.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>

#include "jit/code/code_space.h"
#include "profile/data/cluster_calls.h"
#include "tiering/base/state_lock.h"

namespace uptier::tiering {
namespace {

// Estimated code bytes per counter: a block has some six instructions.
constexpr uint32_t kBytesOfWord = 32;

// Sorts by first calls: methods without a recorded call come first, the last called method comes
// last.
void put_in_order_of_calls(std::vector<Method*>& methods, ProfileStore& store)
    UPTIER_REQUIRES(state_lock) {
  std::map<MethodKey, size_t> place;
  for (const MethodKey& key : store.calls().order()) place.emplace(key, place.size());
  std::ranges::stable_sort(methods, {}, [&](const Method* m) {
    auto at = place.find(m->info.key);
    return at == place.end() ? 0 : at->second + 1;
  });
}

// Code compiled in sequence is placed side by side (code_space.h), so callers and callees should
// be. The heaviest cluster is compiled first, and within it callees precede their callers, which
// then call them past their stubs. Methods are taken from the end of the returned list.
std::vector<Method*> in_order_of_placement(std::span<const std::pair<double, Method*>> known,
                                           ProfileStore& store) UPTIER_REQUIRES(state_lock) {
  std::vector<profile::PlacedFunction> functions;
  std::map<MethodKey, uint32_t> number;
  for (auto [weight, m] : known) {
    number[m->info.key] = static_cast<uint32_t>(functions.size());
    functions.push_back({weight, uint64_t{kBytesOfWord} * store.size_of(m->info.key)});
  }
  std::vector<profile::CallArc> arcs;
  for (const auto& [call, count] : store.calls().graph) {
    auto from = number.find(call.first), to = number.find(call.second);
    if (from != number.end() && to != number.end())
      arcs.push_back({from->second, to->second, count});
  }
  assert(functions.size() == known.size());
  auto clusters = profile::cluster_calls(functions, arcs, jit::CodeSpace::kPage);
  auto heaviest = [&](const std::vector<uint32_t>& cluster) {
    double most = 0;
    for (uint32_t f : cluster) most = std::max(most, known[f].first);
    return most;
  };
  std::ranges::stable_sort(clusters, {}, heaviest);
  std::vector<Method*> order;
  for (const auto& cluster : clusters) {
    for (uint32_t f : cluster) order.push_back(known[f].second);
  }
  return order;
}

}  // namespace

void KnownMethods::list(const MethodTable& methods, ProfileStore& store,
                        const std::function<bool(const Method&)>& may) {
  assert(looked_at_ <= methods.all().size());
  std::span<const std::unique_ptr<Method>> added = methods.all().subspan(looked_at_);
  looked_at_ += added.size();
  if (added.empty()) return;
  const std::vector<Method*> before = std::exchange(known_, {});
  std::vector<std::pair<double, Method*>> hot;
  for (const auto& m : added) {
    bool ours = !m->removed && !m->info.own_code && may(*m);
    double weight = ours ? store.weight(m->info.key) : 0;
    if (weight >= kLeastSavedMass) {
      hot.push_back({weight, m.get()});
    } else if (ours && (weight > 0 || store.calls().first.contains(m->info.key))) {
      known_.push_back(m.get());
    }
  }
  put_in_order_of_calls(known_, store);
  std::ranges::copy(in_order_of_placement(hot, store), std::back_inserter(known_));
  std::ranges::copy(before, std::back_inserter(known_));
}

Method* KnownMethods::next(const std::function<bool(Method&)>& has_code) {
  while (!known_.empty()) {
    Method* m = known_.back();
    known_.pop_back();
    if (!has_code(*m)) return m;
  }
  return nullptr;
}

void KnownMethods::tell_first_call(const Method& m, CallProfile& calls) const {
  bool noticed = m.first_call != 0 && !made_ahead_;
  assert(m.first_call <= first_calls_);
  if (noticed) calls.first[m.info.key] = {m.first_call - 1, CallProfile::kOneRun};
}

}  // namespace uptier::tiering
