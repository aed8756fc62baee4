// dot.h: profiles as pictures, in the language of graphviz.
//
// Blocks and methods are nodes, filled from white to red by the root of their share of the hottest
// one; arrows carry their counts and are as wide as their share. All counts are estimates. Unknown
// counts have no number, and their arrows are dashed.
#pragma once

#include <span>
#include <string>

#include "tools/body_graph.h"
#include "uptier/profile.h"

namespace uptier::tools {

// One method's blocks. `body` may be null: then nobody knows how blocks are connected. With `other`
// each node has both counts, and its colour is the difference of its shares: red where `m` has
// more, blue where `other` has.
std::string dot_of_blocks(const MethodProfile& m, const BodyGraph* body,
                          const MethodProfile* other = nullptr);

// Draws the calls of the `top` methods with most executions: the direct calls that `bodies` (may be
// empty) contains, and the observed indirect calls.
std::string dot_of_calls(const Profile& profile, std::span<const BodyGraph> bodies, uint64_t top);

}  // namespace uptier::tools
