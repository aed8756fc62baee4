// What calls do that come to something in front of a method's code: a trial, or a guard of values. The
// law is that of slow_paths.cc.
#include "tiering/model/trial.h"
#include "tiering/model/value_versions.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

// What the trial routine asks: the cell of the method leads there.
jit::TrialCall RuntimeImpl::trial_call(uint32_t index) noexcept {
  Method& m = method(index);
  AttachedThread* t = here();
  // Pairs with the release of Trials::begin(): what is read here stays until this thread is
  // quiescent, trial or no trial.
  Trial* trial = m.optimizing->trial.load(std::memory_order_acquire);
  if (trial == nullptr) return {enter_anew(m), nullptr};
  if (t == nullptr) return {trial->now.entry, nullptr};
  jit::TrialCall call = trial->begin_call();
  if (!trial->tell()) return call;
  sampler::Note n;
  n.kind = sampler::NoteKind::kTrial;
  n.method = index;
  n.loop = UINT32_MAX;
  if (!t->ring().push(n, {})) {
    trial->tell_again();
    return call;
  }
  wake_worker();
  return call;
}

// A call that came to the trial routine when the trial was over.
const void* RuntimeImpl::enter_anew(Method& m) noexcept {
  const Version* best = m.optimized.load(std::memory_order_acquire);
  if (usable(best)) return best->entry;
  AttachedThread* t = here();
  bool plain = t != nullptr && must_run_plain(m, *t);
  const void* code = plain ? run_plain(m, *t) : code_for_call(m);
  if (code != nullptr) return code;
  raise_no_code(m.id);
  return routines_.trap_exit_at_entry();
}

// A guard's slow path: a window is over, or as many calls have missed as may without a word. The
// call goes to the general version, which is right for it whatever its values are.
const void* RuntimeImpl::guard_told(uint32_t index) noexcept {
  Method& m = method(index);
  AttachedThread* t = here();
  // Acquire: pairs with ValueGuards::install(). What serves now stays until this thread is
  // quiescent.
  auto* v = const_cast<Version*>(m.optimized.load(std::memory_order_acquire));
  bool serves = usable(v) && v->general != nullptr;
  if (!serves) return enter_anew(m);
  bool window = load_word(v->guard_words.calls) < 0;
  int32_t& word = window ? v->guard_words.calls : v->guard_words.misses;
  // The misses of a window are read by the worker. Whoever comes first tells.
  if (load_word(word) >= 0 || exchange_word(word, INT32_MAX) >= 0) return v->general->entry;
  sampler::Note n;
  n.kind = sampler::NoteKind::kGuard;
  n.method = index;
  n.loop = UINT32_MAX;
  if (t == nullptr || !t->ring().push(n, {})) {
    exchange_word(word, ValueVersions::kWindow);  // again, later, and a window from its beginning
    if (window) exchange_word(v->guard_words.misses, INT32_MAX);
    return v->general->entry;
  }
  wake_worker();
  return v->general->entry;
}

}  // namespace uptier::tiering
