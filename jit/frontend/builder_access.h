// BuilderAccess: the library's access to the internals of the public FunctionBuilder.
#pragma once

#include "jit/ir/function.h"
#include "uptier/builder.h"
#include "uptier/result.h"

namespace uptier {

struct BuilderAccess {
  using Impl = FunctionBuilder::Impl;
  // Returns an empty builder that uses the tables of another one.
  static FunctionBuilder begin(std::unique_ptr<Impl> empty, const Signature& s,
                               std::string_view name);
  static Impl& impl(FunctionBuilder& b) { return *b.impl_; }
  // Returns a builder that makes the plain form of a body (plain_form.h). Values that live for more
  // blocks than `short_life` are put into memory.
  static FunctionBuilder begin_plain(const Signature& s, std::string_view name,
                                     uint32_t short_life = 64);
  // Returns whether a build failed because it would have cost too much; the plain form would not.
  static bool too_much(const FunctionBuilder& b);

  // Ends the build: resolves variables, drops unreachable blocks and needless block parameters,
  // places block probes, numbers the sites and hashes the CFG. The builder is empty afterwards.
  // Unsealed or unterminated blocks are not an error here: the verifier names them.
  static jit::Function finish(FunctionBuilder& b);
  // The same, and verifies the function. Errors: the builder's status, or the errors of the
  // verifier.
  static Result<jit::Function> finish_verified(FunctionBuilder& b);

  // Makes `finish` return a function from another source (parsed, generated) instead of the
  // described one. For tools and tests that give a runtime IR.
  static void adopt(FunctionBuilder& b, jit::Function f);
};

}  // namespace uptier
