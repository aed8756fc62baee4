// PassObserver: called after every pass of one compilation, in order. For dumps and tests.
#pragma once

#include <string_view>

#include "jit/ir/function.h"

namespace uptier::jit {

class PassObserver {
 public:
  virtual ~PassObserver() = default;
  // `f` is the result of the pass; keep no reference to it. Thread: the compiling one.
  virtual void after(std::string_view pass, const Function& f) = 0;
};

}  // namespace uptier::jit
