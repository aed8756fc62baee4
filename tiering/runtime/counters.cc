#include "tiering/runtime/counters.h"

#include "tiering/control/finding.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/notes.h"

namespace uptier::tiering {

bool Counters::has_slab(Method& m, AttachedThread& t) noexcept {
  sampler::MethodState& s = t.state(m.id);
  if (s.slab != nullptr) return true;
  uint32_t words = m.slab_words.load(std::memory_order_relaxed);
  if (words == Method::kNotPlanned) return false;  // no code counts yet
  s.slab = m.shape->shared;
  if (s.slab == nullptr) s.slab = t.slabs().take(words);
  if (s.slab == nullptr) t.slabs_refused.fetch_add(1, std::memory_order_relaxed);
  return s.slab != nullptr;
}

bool Counters::ready_to_count(Method& m, AttachedThread& t) noexcept {
  return usable(m.instrumented.load(std::memory_order_acquire)) && has_slab(m, t);
}

void Counters::lose_sample(Method& m, AttachedThread& t) noexcept {
  if (!Finding::may_observe(m)) return;  // nothing is observed, so nothing is lost
  t.samples_without_copy.fetch_add(1, std::memory_order_relaxed);
  bool made = usable(m.instrumented.load(std::memory_order_acquire));
  bool can_make = m.slab_words.load(std::memory_order_relaxed) != 0;
  if (!made && can_make && !m.copy_asked.exchange(true, std::memory_order_relaxed)) {
    notes_.post(m, t, sampler::NoteKind::kWantCopy, UINT32_MAX);
  }
}

}  // namespace uptier::tiering
