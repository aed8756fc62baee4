// The observed counts of a body's blocks and indirect calls, as the compiler needs them.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include "jit/code/stubs.h"
#include "jit/opt/inlinee.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"

namespace uptier::tiering {

// Returns the targets of an indirect call for the compiler, without removed methods.
jit::SiteTargets site_targets(const Estimates::Targets& seen, const jit::StubTable& stubs)
    UPTIER_REQUIRES(state_lock);
// Returns the observed counts of a method's blocks and indirect calls.
jit::BodyProfile body_profile(const Method& m, const Estimates& estimates,
                              const jit::StubTable& stubs) UPTIER_REQUIRES(state_lock);

}  // namespace uptier::tiering
