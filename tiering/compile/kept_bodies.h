// KeptBodies: keeps bodies as they were built, for callers that inline them (Method::body).
//
// The law: only bodies of methods in opt_range, no larger than the limit for inlining, and all of
// them together at most kKeptBytes. A body that does not fit is not inlined, which is never wrong.
//
//   Thread: functions with _locked: with the state mutex; the rest: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "tiering/model/method.h"
#include "uptier/options.h"

namespace uptier::tiering {

class KeptBodies {
 public:
  // `options` outlives this.
  explicit KeptBodies(const Options& options) : options_(options) {}

  // Says whether anything is inlined at all.
  bool wanted() const;
  // Says whether a kept body has guards: then code that inlines may have some.
  bool have_guards() const { return guards_.load(std::memory_order_relaxed); }

  // Keeps a method's body, unless it has one or the law forbids it; forgets it.
  void keep_locked(Method& m, const jit::Function& f);
  void forget_locked(Method& m);

 private:
  const Options& options_;
  uint64_t bytes_ = 0;
  std::atomic<bool> guards_{false};
};

}  // namespace uptier::tiering
