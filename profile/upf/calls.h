// upf/calls.h: the chunks of a profile file with data about calls.
//
// Each is a record with one packed part; part.h defines its head and methods:
//
//     shapes  head | methods | methods * {method, u64 cfg hash, blocks, blocks * {n, n * site},
//             anchors, anchors * {kind, u64 target, block, site}}
//     calls   head | calls | calls * {method, method, count}
//     order   head | methods | methods * {method, positions, runs}
//     time    head | asked ns, squares | path
//             path := samples, ns, callees, callees * {place, method if place is 0, path}
//
// A reader that does not know them skips them with a warning. No count is trusted before the
// counted bytes are present: memory is proportional to the bytes.
#pragma once

#include "profile/upf/format.h"
#include "uptier/profile_calls.h"

namespace uptier::profile {

inline constexpr UpfKind kCallKinds[] = {UpfKind::kShapes, UpfKind::kCalls, UpfKind::kOrder,
                                         UpfKind::kTime};

// Returns the part of a chunk of one of kCallKinds; empty if there is no data.
Bytes call_part(UpfKind kind, const CallProfile& calls);

// Adds the data of a part; fails with the broken rule, and then adds nothing.
Status take_call_part(UpfKind kind, ByteSpan part, CallProfile& into);

}  // namespace uptier::profile
