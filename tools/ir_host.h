// ir_host.h: a module of IR text as an embedder of the runtime.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/frontend/builder_access.h"
#include "jit/ir/module.h"
#include "uptier/runtime.h"

namespace uptier::tools {

// Registers every function of a module as a method and describes it on demand. It must outlive the
// runtime, whose worker may ask it, and the module must outlive it. Thread: build() may be called by any.
class IrHost : public Host {
 public:
  // Errors: as Runtime::add_method.
  static Result<std::unique_ptr<IrHost>> add(Runtime& runtime, const jit::Module& module);

  Status build(MethodId m, FunctionBuilder& b) override;
  // Returns the runtime's method for a function of the module.
  MethodId method(MethodId in_module) const { return methods_[in_module.index()]; }
  std::span<const MethodId> methods() const { return methods_; }

 private:
  explicit IrHost(const jit::Module& module) : module_(module) {}
  const jit::Module& module_;
  std::vector<MethodId> methods_;
};

}  // namespace uptier::tools
