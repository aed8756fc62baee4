// What a profile that outlives the process learns of calls: where a body calls, how often, and in
// which order methods were called first (KnownMethods).
//
// Counts of direct calls need no counter: a block that calls runs as often as its count says. Calls
// through a pointer come from their tables, as far as their targets are known.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include "jit/ir/function.h"
#include "tiering/model/method_table.h"
#include "uptier/profile.h"

namespace uptier::tiering {

// Learns where a method's body calls.
void learn_calls(Method& m, const jit::Function& f, const MethodTable& methods);
// Adds the calls of a method; `seen` holds what was observed of it, or nothing.
void add_calls(const Method& m, const Profile& seen, const MethodTable& methods,
               CallProfile& calls);

}  // namespace uptier::tiering
