// CallPaths: decides how one compilation reaches its callees.
//
//   baseline code, exact gaps   by the stub, which counts
//   optimized code that counts  counts as the stub does, then through the cell
//
// With count_optimized=off, optimized code calls
//
//   the method itself           directly
//   optimized callees           through the cell
//   others                      by the stub
#pragma once

#include <vector>

#include "jit/compile/compile.h"
#include "tiering/compile/compile_env.h"
#include "uptier/plan.h"

namespace uptier::tiering {

class CallPaths final : public jit::CallResolver {
 public:
  // `env` and `plan` outlive this.
  CallPaths(const CompileEnv& env, const Plan& plan) : env_(env), plan_(plan) {}
  jit::CallTarget target(MethodId callee) override;
  // The callees to be reached by their stubs so far, and all that were requested.
  const std::vector<MethodId>& by_stub() const { return by_stub_; }
  const std::vector<MethodId>& reached() const { return reached_; }

 private:
  // Says whether a method was removed after the earliest current LookingAround began.
  bool removed_meanwhile(MethodId m) const;

  const CompileEnv& env_;
  const Plan& plan_;
  std::vector<MethodId> by_stub_, reached_;
};

}  // namespace uptier::tiering
