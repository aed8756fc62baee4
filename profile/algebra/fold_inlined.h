// fold_inlined.h: what a method ran, wherever its code stands.
//
// Law: a method's executions are those of its own code and those of its bodies inside of other methods,
//
//     folded = own profile + sum over the places where it is inlined (blocks, call targets, probes)
//
// summed word by word as merge does. So two runs of one program that inline differently say the same of
// a method. Edges, loops, calls and samples are not known of bodies and stay those of its own code.
//
// A body counts where its code is that of the method's schema, or is not known; of sites that the schema
// has not, nothing counts. What a new copy has inlined and the older code in service still calls is in
// both and counts twice (InlinedBody).
#pragma once

#include <functional>
#include <map>

#include "uptier/profile.h"

namespace uptier::profile {

using uptier::MethodKey;
using uptier::MethodProfile;
using uptier::Profile;
using uptier::Schema;

struct FoldedMethods {
  std::map<MethodKey, MethodProfile> methods;  // those with a body that counts
  uint64_t left_out = 0;  // bodies of other code, and those of methods without a schema
};

// Returns what is known of methods without a profile of their own; null: nothing.
using SchemaOf = std::function<const Schema*(const MethodKey&)>;

// Malformed methods and bodies do not count. O(sites of the methods that are inlined, and of the bodies).
FoldedMethods fold_inlined(const Profile& p, const SchemaOf& schema_of = nullptr);

// The same of two profiles that are to be compared. A method that only bodies tell of on one side has the
// schema that it has on the other, if the code is the same; where neither side has one, it has the sites
// that any of its bodies has.
struct FoldedPair {
  FoldedMethods a;
  FoldedMethods b;
};
FoldedPair fold_both(const Profile& a, const Profile& b);

}  // namespace uptier::profile
