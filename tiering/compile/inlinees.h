// Inlinees: the data about other methods for one compilation by the optimizing compiler.
//
// Bodies were kept when the methods were described (Method::body). The host is not asked again: its
// answer could wait for a lock held by a thread that waits for this compilation. So a method that
// was never called cannot be inlined, nor a large one.
//
//   Thread: one compilation's. find() takes the state mutex; the caller must not hold it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tiering/base/state_lock.h"
#include "tiering/compile/compile_env.h"
#include "tiering/model/method.h"

namespace uptier::tiering {

class Inlinees final : public jit::InlineeSource {
 public:
  // For a compilation of `root`, whose version has the number `serial`. Without `profiles`, methods
  // are provided without their profiles. `env` outlives this.
  Inlinees(const CompileEnv& env, MethodId root, uint64_t serial, bool profiles)
      : env_(env), root_(root), serial_(serial), profiles_(profiles) {}

  const jit::Inlinee* find(MethodId m) override;
  const jit::InlinedBlocks* find_blocks(const jit::InlinePath& path) override;
  const std::vector<jit::SiteTargets>* find_targets(const jit::InlinePath& path) override;

  // Returns the profiles of inlined bodies that the code was made from; `blocks` as in
  // OptimizeRequest::inlined_blocks.
  std::vector<InlinedOrigin> origins(const jit::Code& code,
                                     std::vector<std::vector<float>> blocks) const;

 private:
  struct Known {
    std::unique_ptr<jit::Inlinee> inlinee;  // null: not to be inlined
    double error = 1;                       // bound on its profile's distance from the truth
  };
  // The windows of the root's copy, once its profile has drifted.
  struct Phase {
    std::map<jit::InlinePath, jit::InlinedBlocks> blocks;
    double error = 1;
    std::map<jit::InlinePath, std::vector<jit::SiteTargets>> targets;
  };

  // Blocks, and targets of indirect calls, of a body at its place, from earlier processes.
  struct Saved {
    jit::InlinedBlocks blocks;  // per execution of the body; empty: too little is known
    double blocks_error = 1;    // bound on the distance of their shares from the truth
    std::vector<jit::SiteTargets> targets;
    double error = 0;  // likewise, of the targets' shares
  };

  // `error` receives the bound on the profile's distance from the truth. Null: not to be inlined.
  std::unique_ptr<jit::Inlinee> make(MethodId id, double& error);
  const Phase& phase();
  const Saved& saved(const jit::InlinePath& path);
  // `method`: the body's, with its profile from everywhere; null: it is not inlined.
  Saved saved_locked(const Method& root, const jit::InlinePath& path,
                     const jit::Inlinee* method) const UPTIER_REQUIRES(state_lock);

  const CompileEnv& env_;
  MethodId root_;
  uint64_t serial_;
  bool profiles_;
  std::map<MethodId, Known> known_;
  std::optional<Phase> phase_;              // made at the first request
  std::map<jit::InlinePath, Saved> saved_;  // made at the first request
};

}  // namespace uptier::tiering
