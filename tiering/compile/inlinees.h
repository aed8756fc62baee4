// Inlinees: what the optimizing compiler may know of other methods, for one compilation.
//
// Bodies are those that were kept when the methods were described (Method::body): the host is not
// asked again, for its answer could wait for a lock that the one who waits for this compilation
// holds. So a method that was never called cannot be inlined, nor one that is large.
//
//   Thread: one compilation's. find() takes the state mutex; the caller must not hold it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tiering/compile/compile_env.h"
#include "tiering/model/method.h"

namespace uptier::tiering {

class Inlinees final : public jit::InlineeSource {
 public:
  // For a compilation of `root`, the version of number `serial`. Without `profiles` methods are told
  // of, but not what was observed of them. `env` outlives this.
  Inlinees(const CompileEnv& env, MethodId root, uint64_t serial, bool profiles)
      : env_(env), root_(root), serial_(serial), profiles_(profiles) {}

  const jit::Inlinee* find(MethodId m) override;
  const jit::InlinedBlocks* find_blocks(const jit::InlinePath& path) override;
  const std::vector<jit::SiteTargets>* find_targets(const jit::InlinePath& path) override;

  // Returns what code was made from of the bodies that are inlined into it; `blocks` as
  // OptimizeRequest::inlined_blocks says.
  std::vector<InlinedOrigin> origins(const jit::Code& code,
                                     std::vector<std::vector<float>> blocks) const;

 private:
  struct Known {
    std::unique_ptr<jit::Inlinee> inlinee;  // null: not to be inlined
    double error = 1;                       // how far its profile may lie from the truth
  };
  // The windows of the root's copy, once its profile has drifted.
  struct Phase {
    std::map<jit::InlinePath, jit::InlinedBlocks> blocks;
    double error = 1;
    std::map<jit::InlinePath, std::vector<jit::SiteTargets>> targets;
  };

  // The targets that earlier processes have seen for the indirect calls of a body at its place.
  struct Saved {
    std::vector<jit::SiteTargets> targets;
    double error = 0;  // how far their shares may lie from the truth
  };

  // `error` receives how far the profile may lie from the truth. Null: not to be inlined.
  std::unique_ptr<jit::Inlinee> make(MethodId id, double& error);
  const Phase& phase();
  const Saved& saved(const jit::InlinePath& path);
  Saved saved_locked(const Method& root, const jit::InlinePath& path) const;

  const CompileEnv& env_;
  MethodId root_;
  uint64_t serial_;
  bool profiles_;
  std::map<MethodId, Known> known_;
  std::optional<Phase> phase_;              // once asked for
  std::map<jit::InlinePath, Saved> saved_;  // likewise
};

}  // namespace uptier::tiering
