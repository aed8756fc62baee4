#include "tiering/runtime/trial_calls.h"

#include <cassert>

#include "tiering/model/thread.h"
#include "tiering/model/trial.h"
#include "tiering/model/value_versions.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest_calls.h"
#include "tiering/runtime/guest_waits.h"
#include "tiering/runtime/traps.h"

namespace uptier::tiering {

jit::TrialCall TrialCalls::trial_call(uint32_t index) noexcept {
  Method& m = engine_.method(index);
  AttachedThread* t = engine_.here();
  // Pairs with the release of Trials::begin(). The trial read here stays until this thread is
  // quiescent, whether it is still active or not.
  Trial* trial = m.optimizing->trial.load(std::memory_order_acquire);
  if (trial == nullptr) return {enter_again(m), nullptr};
  if (t == nullptr) return {trial->now.entry, nullptr};
  jit::TrialCall call = trial->begin_call();
  assert(call.entry == trial->before.entry || call.entry == trial->now.entry);
  if (!trial->tell()) return call;
  sampler::Note n;
  n.kind = sampler::NoteKind::kTrial;
  n.method = index;
  n.loop = UINT32_MAX;
  if (!t->ring().push(n, {})) {
    trial->tell_again();
    return call;
  }
  guest_waits_.wake_worker(m);
  return call;
}

const void* TrialCalls::guard_told(uint32_t index) noexcept {
  Method& m = engine_.method(index);
  AttachedThread* t = engine_.here();
  // Acquire: pairs with ValueGuards::install(). The version in service stays until this thread is
  // quiescent.
  auto* v = const_cast<Version*>(m.optimized.load(std::memory_order_acquire));
  bool serves = usable(v) && v->general != nullptr;
  if (!serves) return enter_again(m);
  assert(v->general->entry != nullptr && v->guard.counted != nullptr);
  bool window = load_word(v->guard_words.calls) < 0;
  int32_t& word = window ? v->guard_words.calls : v->guard_words.misses;
  // The worker reads the misses of a window. The first thread reports.
  if (load_word(word) >= 0 || exchange_word(word, INT32_MAX) >= 0) return v->general->entry;
  sampler::Note n;
  n.kind = sampler::NoteKind::kGuard;
  n.method = index;
  n.loop = UINT32_MAX;
  if (t == nullptr || !t->ring().push(n, {})) {
    exchange_word(word, ValueVersions::kWindow);  // later, with a new window
    if (window) exchange_word(v->guard_words.misses, INT32_MAX);
    return v->general->entry;
  }
  guest_waits_.wake_worker(m);
  return v->general->entry;
}

const void* TrialCalls::enter_again(Method& m) noexcept {
  const Version* best = m.optimized.load(std::memory_order_acquire);
  if (usable(best)) return best->entry;
  AttachedThread* t = engine_.here();
  bool plain = t != nullptr && guest_calls_.must_run_plain(m, *t);
  const void* code = plain ? guest_calls_.run_plain(m, *t) : guest_calls_.code_for_call(m);
  if (code != nullptr) return code;
  raise_no_code(m.id);
  return engine_.routines.trap_exit_at_entry();
}

}  // namespace uptier::tiering
