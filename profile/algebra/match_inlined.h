// match_inlined.h: carries observations of inlined bodies over to edited code.
//
// Law: a body is kept if the root and every callee on the path are known to have the same code as
// when it was observed, so all sites on the path and all blocks keep their meaning; its numbers
// stay. All others are dropped: nothing tells where a call of changed code is inlined now.
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
  MethodKey key;          // its current key
  uint64_t cfg_hash = 0;  // of its code, old and new
  bool profiled = false;  // the old profile has it, with this hash
};

// By old key. No two have the same new key.
using SameMethods = std::map<MethodKey, SameMethod>;

struct InlinedMatch {
  InlinedBodies kept;  // under their new keys
  uint64_t dropped = 0;
};

// A hash of 0 in a body's code means unknown; the hash of the method's own profile is used instead,
// if there is one. O(bodies * path * log methods).
InlinedMatch match_inlined(const InlinedBodies& old, const SameMethods& same);

}  // namespace uptier::profile
