// InlinePath: identifies a body that is inlined into a method, across compilations.
//
// Each step is a call: its site in the calling body, and the called method (a site with several
// guessed callees has several bodies). No two bodies of one code have the same path. The numbers of
// bodies, in contrast, belong to one compilation (see Origin).
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
