// match_inlined.h: what was seen of inlined bodies, after an edit of the code.
//
// Law: a body is kept if the root and every callee on the way are known to have the code that it was
// seen in, so all sites on the way and all blocks mean what they meant; and its numbers stay. All
// others are dropped: nothing says where a call of changed code is inlined now.
#pragma once

#include <map>

#include "uptier/profile.h"

namespace uptier::profile {

using uptier::InlinedBodies;
using uptier::InlinedBody;
using uptier::InlinedKey;
using uptier::MethodKey;

// A method whose code did not change.
struct SameMethod {
  MethodKey key;          // what it is called now
  uint64_t cfg_hash = 0;  // of its code, old and new
  bool profiled = false;  // the old profile has it, with this hash
};

// By old key. No two have one new key.
using SameMethods = std::map<MethodKey, SameMethod>;

struct InlinedMatch {
  InlinedBodies kept;  // under their new keys
  uint64_t dropped = 0;
};

// A hash of 0 in a body's code, which is not known, is taken for that of the method's own profile,
// where there is one. O(bodies * path * log methods).
InlinedMatch match_inlined(const InlinedBodies& old, const SameMethods& same);

}  // namespace uptier::profile
