// Makes room in the code space: takes code from the coldest methods and frees it.
#include "tiering/control/eviction.h"

#include <algorithm>
#include <cassert>

#include "tiering/base/state_lock.h"

namespace uptier::tiering {
namespace {

// Shares of the budget: the worker starts to make room above the first, and stops at the second.
constexpr double kFull = 0.9;
constexpr double kFilledEnough = 0.75;

uint64_t bytes_in_service(const Method& m) UPTIER_REQUIRES(state_lock) {
  uint64_t sum = 0;
  for (const auto& v : m.versions) sum += v->retired ? 0 : v->code_bytes;
  return sum;
}

// Returns the methods that could lose code: unlinked ones first, then those that were inactive
// longest.
std::vector<Method*> eviction_order(const MethodTable& methods) UPTIER_REQUIRES(state_lock) {
  std::vector<Method*> order;
  for (const auto& m : methods.all()) {
    // The code of a method whose descriptions differ could not be made again.
    bool ours = !m->removed && !m->info.own_code && !m->is_unstable() && bytes_in_service(*m) != 0;
    if (ours) order.push_back(m.get());
  }
  std::stable_sort(order.begin(), order.end(), [](const Method* a, const Method* b) {
    state_lock.known_held();
    if (a->unlinked != b->unlinked) return a->unlinked;
    return a->last_active < b->last_active;
  });
  return order;
}

}  // namespace

Eviction::Eviction(const Parts& p)
    : options_(p.options),
      live_(p.live),
      stress_(p.stress),
      state_mutex_(p.state_mutex),
      methods_(p.methods),
      space_(p.space),
      compiler_(p.compiler),
      relay_(p.relay),
      requests_(p.requests),
      in_service_(p.in_service) {}

void Eviction::make_room_locked(uint64_t wanted, bool urgent) {
  in_service_.reclaim_locked();
  auto budget = static_cast<double>(live_.code_budget);
  auto over = [&](double share) {
    auto taken = static_cast<double>(space_.bytes_in_service());
    return taken + static_cast<double>(wanted) > share * budget;
  };
  if (!over(kFull)) return;
  std::vector<Method*> order = eviction_order(methods_);
  size_t next = 0;
  for (; next < order.size() && over(kFilledEnough); ++next) {
    if (!order[next]->unlinked && !urgent) break;
    assert(!order[next]->removed && !order[next]->info.own_code);
    in_service_.evict_locked(*order[next]);
    in_service_.reclaim_locked();
  }
  // The next quarter gets its second chance.
  size_t end = std::min(order.size(), next + (order.size() + 3) / 4);
  for (; next < end; ++next) in_service_.unlink_locked(*order[next]);
}

// A method that was optimized when it lost its code is optimized again, with its current profile.
void Eviction::ask_again_after_eviction(Method& m) {
  if (!m.wants_optimized || options_.tier != TierMode::kAuto) return;
  m.wants_optimized = false;
  requests_.add(m, {.method = m.id, .tier = Tier::kOptimized, .use_profile = true}, 1e18);
  m.wake_after_call.store(true, std::memory_order_relaxed);
}

// Compiles. If there is no room, makes some and tries once more: by compaction if that suffices,
// else by eviction. The length of the code is a guess, and the worker may take the freed room. So
// for the plain copy that a caller waits for (`urgent`) and cannot go on without, all code that is
// not running is evicted before it gives up.
Result<std::unique_ptr<Version>> Eviction::make_with_room(Method& m, const Plan& plan,
                                                          bool urgent) {
  Result<std::unique_ptr<Version>> v = compiler_.make(m, plan);
  if (v || v.error().code != ErrorCode::kResourceExhausted) return v;
  if (stress_.active(StressKind::kCode)) return v;  // the stress plan forces refusals
  if (relay_.for_room()) {
    v = compiler_.make(m, plan);
    if (v || v.error().code != ErrorCode::kResourceExhausted) return v;
  }
  const uint64_t guess = uint64_t{m.shape->instructions} * 16 + jit::CodeSpace::kPage;
  const bool needed = urgent && plan.tier == Tier::kBaseline && plan.copy == Copy::kPlain;
  for (uint64_t wanted : {guess, UINT64_MAX}) {
    if (wanted != guess && !needed) break;
    {
      HeldState lock(state_mutex_);
      make_room_locked(wanted, urgent);
    }
    v = compiler_.make(m, plan);
    if (v || v.error().code != ErrorCode::kResourceExhausted) break;
  }
  return v;
}

}  // namespace uptier::tiering
