// The wall between the public FunctionBuilder and the Function that it makes.
#pragma once

#include "jit/ir/function.h"
#include "uptier/builder.h"
#include "uptier/result.h"

namespace uptier {

struct BuilderAccess {
  using Impl = FunctionBuilder::Impl;
  // Returns a builder that is told everything from the beginning, into the tables of another.
  static FunctionBuilder begin(std::unique_ptr<Impl> empty, const Signature& s,
                               std::string_view name);
  static Impl& impl(FunctionBuilder& b) { return *b.impl_; }

  // Ends the build: resolves variables, drops unreachable blocks and needless block parameters,
  // places block probes, numbers the sites and hashes the CFG. The builder is empty afterwards.
  // Unsealed or unterminated blocks are not an error here: the verifier names them.
  static jit::Function finish(FunctionBuilder& b);
  // The same, and verifies it. Errors: the builder's status, or those of the verifier.
  static Result<jit::Function> finish_verified(FunctionBuilder& b);

  // Makes `finish` return a function that was made otherwise (parsed, generated) instead of what
  // the builder was told. For tools and tests that feed a runtime with IR.
  static void adopt(FunctionBuilder& b, jit::Function f);
};

}  // namespace uptier
