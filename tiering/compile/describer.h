// Describer: from a host to IR: the description of a method, and what it teaches about it.
//
// The first description says what never changes about the method. Its probes are planned when code that
// counts, or code that uses counts, is to be made: most methods of a large program are called a few
// times, and never get there (docs/notes/0040).
//
//   Thread: any, one a method: the caller has the method's turn (compile_turns.h), looks around
//   (LookingAround), and does not hold the state mutex; but learn_own(), whose caller holds it, and
//   copies_first() and unstable_bodies(), any.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "jit/analysis/loop_forest.h"
#include "jit/frontend/spare_build.h"
#include "jit/ir/function.h"
#include "tiering/compile/compile_env.h"
#include "tiering/model/method.h"

namespace uptier::tiering {

class Describer {
 public:
  // `env` outlives this.
  explicit Describer(const CompileEnv& env) : env_(env) {}

  // Whether the code that is made from a description counts, or uses counts.
  enum class Observed : uint8_t { kYes, kNotYet };
  // Returns a method's description; what was described ahead of its compilation is used once.
  Result<jit::Function> describe(Method& m, Observed observed);
  // Learns what there is to know of a method; its compilation will not ask the host again.
  Status describe_ahead(Method& m);
  // Learns the shape of a method that the host compiles by itself.
  void learn_own(Method& m);
  // The code of a description has been made: its memory serves the next one.
  void keep(jit::Function f) { spare_build_.keep(std::move(f)); }

  // Returns whether the instrumented copy is made with the plain one: it waits for the first sample, unless no
  // sample may be missed.
  bool copies_first(const Method& m) const;
  // Returns how many methods were described differently so often that they are given up.
  uint64_t unstable_bodies() const { return unstable_bodies_.load(std::memory_order_relaxed); }

 private:
  Result<jit::Function> describe_anew(Method& m, Observed observed);
  Error refuse_unlike(Method& m);
  Result<jit::Function> ask_host(Method& m);
  Status check_callees(const Method& m, const jit::Function& f) const;
  bool plans_at_once(Method& m, const jit::Function& f);
  void place_probes(Method& m, jit::Function& f, Observed observed);
  void plan_probes(Method& m, const jit::Function& f, const jit::LoopForest& forest);

  const CompileEnv& env_;
  jit::SpareBuild spare_build_;
  std::atomic<uint64_t> unstable_bodies_{0};
};

}  // namespace uptier::tiering
