// describe_imaged_callees: before a method is optimized, describes the methods that its code may
// inline and whose code came from an image: a method that was never described cannot be inlined.
#pragma once

#include <vector>

#include "tiering/base/state_lock.h"
#include "uptier/ids.h"

namespace uptier::tiering {

struct Engine;
struct Method;

// Thread: any, without a turn and without the state mutex; the caller has a LookingAround. It takes
// the turn of one method at a time, so threads never wait in a circle for it (docs/notes/0018).
void describe_imaged_callees(Engine& engine, Method& m);

// Returns the callees that a method may inline: its direct callees, and the targets of its indirect
// calls, by its profile. The caller has the turn of the method.
std::vector<MethodId> likely_inlinees(Engine& engine, Method& m);

}  // namespace uptier::tiering
