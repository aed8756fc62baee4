// same_names.h: methods of one profile under the keys that they have in another.
//
// A key has the hash of its module in it, so every method of a program that was built again has a new
// one. Law: a method keeps its key if the other profile has it. Else it gets the key of the method with the
// same name, if on both sides only one method has this name and no partner by key. Names that only say
// where a function is ("func[12]") pair methods of the same code only.
#pragma once

#include <map>

#include "uptier/profile.h"
#include "uptier/profile_time.h"

namespace uptier::profile {

using NewKeys = std::map<MethodKey, MethodKey>;  // by old key

// Returns the keys in `to` of those methods of `from` that have another key there. No two get the same.
// O(methods log methods).
NewKeys same_names(const Profile& from, const Profile& to);

// Gives methods their new keys, wherever a profile names them: as methods, in inlined bodies and their
// paths, and as targets of calls. Other code is removed. Estimates and counts stay.
void rename_methods(Profile& p, const NewKeys& keys);
void rename_methods(TimeProfile& t, const NewKeys& keys);

}  // namespace uptier::profile
