// Describer: gets the description of a method from its host as IR, and learns from it.
//
// The first description determines the constant data of the method. Its probes are planned only
// when code that counts, or code that uses counts, is to be made: most methods of a large program
// are called a few times and never get there (docs/notes/0040).
//
//   Thread: any, one per method: the caller has the method's turn (compile_turns.h), has a
//   LookingAround, and does not hold the state mutex. Exceptions: the caller of learn_own() holds it;
//   copies_first() and unstable_bodies(): any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "jit/analysis/loop_forest.h"
#include "jit/frontend/spare_build.h"
#include "jit/ir/function.h"
#include "tiering/base/state_lock.h"
#include "tiering/compile/compile_env.h"
#include "tiering/model/method.h"

namespace uptier::tiering {

class EventTimes;

class Describer {
 public:
  // `env` outlives this.
  explicit Describer(const CompileEnv& env) : env_(env) {}

  // Says whether the code made from a description counts, or uses counts.
  enum class Observed : uint8_t { kYes, kNotYet };
  // Returns a method's description; a description made ahead of the compilation is used once.
  Result<jit::Function> describe(Method& m, Observed observed);
  // Describes a method now; its compilation will not ask the host again.
  Status describe_ahead(Method& m);
  // Describes a method whose shape came from an image, and plans its probes; its compilation will not
  // ask the host again. Does nothing for other methods.
  Status describe_imaged(Method& m);
  // Says whether first code may come from an image: code that counts nothing, before any description.
  bool may_be_imaged(const Method& m) const;
  // If a saved profile knows a method whose shape came from an image, describes the method and plans
  // its probes, since the profile is adopted with the plan.
  Status plan_if_known(Method& m);
  // Learns a shape from an image.
  void learn_imaged(Method& m, std::unique_ptr<MethodShape> shape);
  // Learns the shape of a method that the host compiles by itself.
  void learn_own(Method& m) UPTIER_REQUIRES(state_lock);
  // The description has been compiled: its memory is reused for the next one.
  void keep(jit::Function f) { spare_build_.keep(std::move(f)); }

  // Says whether the instrumented copy is made together with the plain one. Otherwise it waits for
  // the first sample, unless no sample may be missed.
  bool copies_first(const Method& m) const;
  // Returns the number of methods that were described differently too often, so that they are given
  // up.
  uint64_t unstable_bodies() const { return unstable_bodies_.load(std::memory_order_relaxed); }

 private:
  Result<jit::Function> describe_anew(Method& m, Observed observed);
  void keep_body(Method& m, const jit::Function& f, bool first);
  Error refuse_unlike(Method& m);
  Result<jit::Function> ask_host(Method& m, EventTimes& times);
  Status check_callees(const Method& m, const jit::Function& f) const;
  bool plans_at_once(Method& m, const jit::Function& f);
  bool can_plan_later(const Method& m) const;
  void place_probes(Method& m, jit::Function& f, Observed observed);
  void plan_probes(Method& m, const jit::Function& f, const jit::LoopForest& forest);

  const CompileEnv& env_;
  jit::SpareBuild spare_build_;
  std::atomic<uint64_t> unstable_bodies_{0};
};

}  // namespace uptier::tiering
