// code_shape: the features by which a body is recognized after an edit: its calls, probes and
// loops, in build order, and the graph of its blocks.
#pragma once

#include <functional>
#include <string_view>

#include "jit/ir/function.h"
#include "uptier/profile_calls.h"

namespace uptier::jit {

// Returns the name of a method that is called directly; the view lives as long as the call.
using NameOf = std::function<std::string_view(MethodId)>;

// `f` is in build order, as the builder left it: no pass has changed it. Linear.
CodeShape code_shape(const Function& f, const NameOf& name_of);

// A direct call of a method.
struct DirectCall {
  SiteId block = 0;
  MethodId callee;
};
std::vector<DirectCall> direct_calls(const Function& f);

}  // namespace uptier::jit
