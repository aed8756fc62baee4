// unite.h: combines the observations of one code with different options in one schema.
//
// Law: the union has the slots of both sides, in order; a table that both have gets the greater
// top. A schema united with itself is unchanged, and neither order nor grouping matters. (Beyond
// Schema::kMaxWords, which only files made for that purpose reach, the last slots are left out.)
#pragma once

#include "uptier/profile.h"

namespace uptier::profile {

using uptier::MethodProfile;
using uptier::Schema;

// Returns the union of two valid schemas of one code. `cut` receives whether slots were left out.
Schema united(const Schema& a, const Schema& b, bool& cut);

// Converts a method to another schema of its code: new slots are 0, and slots that the schema does
// not have are removed. The method must pass check.
void spread(const Schema& to, MethodProfile& method);

}  // namespace uptier::profile
