// Value speculation: the values that a version assumes, by the profile. If a value inside the body
// differs, the code exits; values of parameters are tested by a guard in front of it.
#pragma once

#include <vector>

#include "jit/compile/compile.h"
#include "tiering/base/state_lock.h"
#include "tiering/compile/compile_env.h"
#include "tiering/model/method.h"
#include "uptier/plan.h"

namespace uptier::tiering {

// Returns the values that the next version assumes inside the body. The caller holds the state
// mutex.
std::vector<jit::SiteValues> guess_values(const CompileEnv& env, Method& m, const Plan& plan)
    UPTIER_REQUIRES(state_lock);
// Puts the guard in front of a newly compiled version for values. If the general version was
// removed meanwhile, there is no guard, and the version is dropped when it is installed. Takes the
// state mutex.
Status make_guard(const CompileEnv& env, Method& m, Version& v);

}  // namespace uptier::tiering
