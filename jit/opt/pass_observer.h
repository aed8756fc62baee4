// PassObserver: is called after every pass of one compilation, in order. For dumps and tests.
#pragma once

#include <string_view>

#include "jit/ir/function.h"

namespace uptier::jit {

class PassObserver {
 public:
  virtual ~PassObserver() = default;
  // `f` is what the pass left; it is not to be kept. Thread: the one that compiles.
  virtual void after(std::string_view pass, const Function& f) = 0;
};

}  // namespace uptier::jit
