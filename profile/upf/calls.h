// upf/calls.h: the chunks of a profile file that hold what it knows of calls.
//
// Each is a record with one packed part, whose head and methods are those of part.h:
//
//     shapes  head | methods | methods * {method, u64 cfg hash, blocks, blocks * {n, n * site},
//             anchors, anchors * {kind, u64 target, block, site}}
//     calls   head | calls | calls * {method, method, count}
//     order   head | methods | methods * {method, positions, runs}
//     time    head | asked ns, squares | path
//             path := samples, ns, callees, callees * {place, method if place is 0, path}
//
// A reader that does not know them skips them with a warning. Nothing is believed before what it
// counts is there: memory is in proportion to the bytes.
#pragma once

#include "profile/upf/format.h"
#include "uptier/profile_calls.h"

namespace uptier::profile {

inline constexpr UpfKind kCallKinds[] = {UpfKind::kShapes, UpfKind::kCalls, UpfKind::kOrder,
                                         UpfKind::kTime};

// Returns the part of a chunk of one of kCallKinds; empty where there is nothing to say.
Bytes call_part(UpfKind kind, const CallProfile& calls);

// Adds what a part holds; fails with the rule that is broken, and adds nothing then.
Status take_call_part(UpfKind kind, ByteSpan part, CallProfile& into);

}  // namespace uptier::profile
