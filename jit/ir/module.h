// Module: functions that call each other by number. MethodId i is functions[i].
#pragma once

#include <string_view>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

struct Module {
  std::vector<Function> functions;

  // Returns the first function of that name, or none.
  MethodId find(std::string_view name) const {
    for (uint32_t i = 0; i < functions.size(); ++i) {
      if (functions[i].name == name) return MethodId(i);
    }
    return MethodId::none();
  }
};

}  // namespace uptier::jit
