// fold_inlined.h: all executions of a method, including those of its inlined bodies.
//
// Law: a method's executions are those of its own code and those of its bodies inside of other
// methods,
//
//     folded = own profile + sum over the places where it is inlined (blocks, call targets, probes)
//
// summed word by word as in merge. So two runs of one program that inline differently agree about a
// method. Edges, loops, calls and samples are not known for bodies and stay those of the method's
// own code.
//
// A body counts if its code is the code of the method's schema, or is not known; sites that the
// schema does not have do not count. If a new copy has inlined a body and the older code in service
// still calls it, its executions are in both and count twice (InlinedBody).
#pragma once

#include <functional>
#include <map>
#include <set>

#include "uptier/profile.h"

namespace uptier::profile {

using uptier::MethodKey;
using uptier::MethodProfile;
using uptier::Profile;
using uptier::Schema;

struct FoldedMethods {
  std::map<MethodKey, MethodProfile> methods;  // those with a body that counts
  uint64_t left_out = 0;  // bodies of other code, and those of methods without a schema
  // Blocks that were never counted, though a body of the method ran that does not know them: unknown, not 0.
  std::map<MethodKey, std::set<SiteId>> unknown;
};

// Returns the schema of a method without a profile of its own; null: unknown.
using SchemaOf = std::function<const Schema*(const MethodKey&)>;

// Malformed methods and bodies do not count. O(sites of the inlined methods and of the bodies).
FoldedMethods fold_inlined(const Profile& p, const SchemaOf& schema_of = nullptr);

// The same for two profiles that are to be compared. A method that on one side has only bodies gets
// the schema of the other side, if the code is the same; if neither side has a schema, it gets all
// sites of its bodies.
struct FoldedPair {
  FoldedMethods a;
  FoldedMethods b;
};
FoldedPair fold_both(const Profile& a, const Profile& b);

}  // namespace uptier::profile
