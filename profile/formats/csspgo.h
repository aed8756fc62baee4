// csspgo.h: a profile as LLVM's sample profile with pseudo-probes, in text form.
//
//     name:total:head          of a method: the sum of its probes, and its calls
//      PROBE: COUNT            a block, or a call
//      PROBE: COUNT CALLEE:COUNT ...
//      PROBE: CALLEE:total     a body that is inlined at a call, with its own probes below
//      !CFGChecksum: HASH
//
// The ids of probes are sites: blocks in the order in which they were built, from 1, then calls. The checksum is
// the hash of the code's control flow. With contexts, an inlined body is a record of its own, named by the
// path of calls: "[root:PROBE @ callee]". Estimates are written, not raw counts. A probe with
// the count 0 never ran; one that is missing is unknown.
//
// Calls are known only if the profile has the shape of the code, and callees of direct calls only if the
// profile names them. LLVM's ids have 16 bits: sites above 65,535 are left out. Marks in names that would
// break the format become '_'; a name that several methods have gets its method's key.
//
// Read by llvm-profdata and llvm-profgen of LLVM 22 and by its compiler's -fprofile-sample-use.
#pragma once

#include <string>

#include "uptier/profile.h"
#include "uptier/profile_calls.h"

namespace uptier::profile {

enum class Contexts : bool { kNested, kApart };

std::string to_csspgo(const Profile& profile, const CallProfile& calls, Contexts contexts);

}  // namespace uptier::profile
