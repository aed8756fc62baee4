// InlinePath: which of the bodies that are inlined into a method one is, across compilations.
//
// A call by its site, in the body that calls, and the method that is called there (a guess may know
// several). No two bodies of one code have the same path. How bodies are numbered is a matter of one
// compilation (see Origin).
#pragma once

#include <compare>
#include <vector>

#include "uptier/ids.h"

namespace uptier::jit {

struct InlineStep {
  SiteId site = 0;
  MethodId method;

  friend bool operator==(const InlineStep&, const InlineStep&) = default;
  friend auto operator<=>(const InlineStep&, const InlineStep&) = default;
};

using InlinePath = std::vector<InlineStep>;  // from the root inwards

}  // namespace uptier::jit
