#include "tiering/compile/requests.h"

#include <cassert>

#include "tiering/model/event_of.h"

namespace uptier::tiering {

void Requests::add(Method& m, const Plan& plan, double priority) {
  assert(plan.method == m.id);
  if (m.removed) return;        // frames of a removed method still report events
  if (m.is_unstable()) return;  // it would fail as before, and the caller does not ask again
  if (plan.osr_loop.valid() && plan.copy == Copy::kPlain) {
    assert(plan.osr_loop.index() < m.shape->loop_count);
    m.shape.made()->osr_requested[plan.osr_loop.index()] = true;
    m.shape.made()->osr_began.store(true, std::memory_order_relaxed);
    m.shape->osr_questions[plan.osr_loop.index()].begin_anew();
  } else if (plan.copy == Copy::kPlain) {
    m.optimized_requested = true;
  }
  if (std::optional<Plan> dropped = queue_.push(plan, priority)) {
    assert(methods_.serves(dropped->method));  // the queue has no plans of removed methods
    Method& of = methods_.at(dropped->method.index());
    events_.emit(event_of(EventKind::kDropped, of));
    done(of, *dropped);
  }
}

void Requests::done(Method& m, const Plan& plan) {
  // LoopCopy::asked stays set: there is no second request.
  if (plan.osr_loop.valid() && plan.copy == Copy::kInstrumented) return;
  if (plan.osr_loop.valid()) {
    assert(plan.osr_loop.index() < m.shape->loop_count);
    m.shape.made()->osr_requested[plan.osr_loop.index()] = false;
    m.shape->osr_asked[plan.osr_loop.index()].store(false, std::memory_order_relaxed);
  } else if (plan.copy == Copy::kPlain) {
    m.optimized_requested = false;
  } else if (plan.tier == Tier::kBaseline) {
    m.copy_asked.store(false, std::memory_order_relaxed);
  } else if (Optimizing* o = m.optimizing.made()) {
    o->copy_expected.store(false, std::memory_order_relaxed);
  }
}

}  // namespace uptier::tiering
