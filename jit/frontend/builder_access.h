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
  // A builder that makes the plain form of a body (plain_form.h), whatever it is told. Values that
  // live for more blocks than `short_life` are put into memory.
  static FunctionBuilder begin_plain(const Signature& s, std::string_view name,
                                     uint32_t short_life = 64);
  // Returns whether a build failed because it would have taken too much, which the plain form does not.
  static bool too_much(const FunctionBuilder& b);

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
