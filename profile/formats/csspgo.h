// csspgo.h: writes LLVM's sample profile with pseudo-probes, as llvm-profgen writes it, in text.
//
// A site is a probe: blocks have the first numbers, calls the next ones, as in LLVM. So a line is
// "site: executions", where LLVM without probes has a line of the source.
#pragma once

#include <string>

#include "uptier/profile.h"

namespace uptier::profile {

// Returns a record for each method with blocks, or with bodies inlined into it:
//
//     name:total:entries
//      1: 10                    a block, or an indirect call with its targets:
//      7: 4 callee:3 other:1
//      8: inlined:20            a body that replaces the call 8, with its own lines
//       1: 20
//       !CFGChecksum: 5
//      !CFGChecksum: 6
//
// The executions are estimates. `total` is the sum of the lines, bodies included; `entries` the
// executions of block 1. Names are probe_names(). A site without a line is unknown, and one with 0 has
// not been seen. Direct calls have no line, since a profile does not count them at their sites. A
// checksum is the hash of the code; 0 is unknown. Sums stop at 2^64-1.
std::string to_csspgo(const Profile& profile);

}  // namespace uptier::profile
