// CompileLimit: ends an optimizing compilation that takes too long.
#pragma once

namespace uptier::jit {

// The budget of an optimizing compilation.
class CompileLimit {
 public:
  virtual ~CompileLimit() = default;
  // Returns whether the budget is spent, which ends the compilation. Called after each pass with the
  // name of the pass (static text).
  virtual bool over(const char* pass) = 0;
};

}  // namespace uptier::jit
