// Value speculation: which values a version assumes, by the profile. It leaves optimized code where a
// value inside of its body differs; values of parameters are tested by a guard in front of it.
#pragma once

#include <vector>

#include "jit/compile/compile.h"
#include "tiering/compile/compile_env.h"
#include "tiering/model/method.h"
#include "uptier/plan.h"

namespace uptier::tiering {

// Returns the values that the next version assumes inside of the body. The caller holds the state
// mutex.
std::vector<jit::SiteValues> guess_values(const CompileEnv& env, Method& m, const Plan& plan);
// Puts the guard in front of a version for values that has just been compiled. If the general version
// has gone meanwhile there is no guard, and the version is dropped when it is installed. Takes the state
// mutex.
Status make_guard(const CompileEnv& env, Method& m, Version& v);

}  // namespace uptier::tiering
