// unite.h: what was observed of one code with different options, in one schema.
//
// Law: the slots of a union are those of either side, in order; of a table that both have the greater
// top. United with itself a schema stays what it is, and neither order nor grouping matters. (Beyond
// Schema::kMaxWords, which only files that were made for it reach, slots are left out from behind.)
#pragma once

#include "uptier/profile.h"

namespace uptier::profile {

using uptier::MethodProfile;
using uptier::Schema;

// Returns the union of two valid schemas of one code. `cut` receives whether slots were left out.
Schema united(const Schema& a, const Schema& b, bool& cut);

// Brings a method to another schema of its code: slots that it did not have are 0, those that the
// schema has not go. The method must pass check.
void spread(const Schema& to, MethodProfile& method);

}  // namespace uptier::profile
