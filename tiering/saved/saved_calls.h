// Learns calls for a profile that outlives the process: the calls in a body, their counts, and the
// order of first calls (KnownMethods).
//
// Counts of direct calls need no counter: a call runs as often as its block. Indirect calls come
// from their tables, as far as their targets are known.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include "jit/ir/function.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method_table.h"
#include "uptier/profile.h"

namespace uptier::tiering {

// Learns the calls in a method's body.
void learn_calls(Method& m, const jit::Function& f, const MethodTable& methods)
    UPTIER_REQUIRES(state_lock);
// Adds the calls of a method; `seen` has its observed counts, or nothing.
void add_calls(const Method& m, const Profile& seen, const MethodTable& methods, CallProfile& calls)
    UPTIER_REQUIRES(state_lock);

}  // namespace uptier::tiering
