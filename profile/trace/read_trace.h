// read_trace.h: what a trace has come to, damaged or not.
//
// Law: of a whole trace it is what profile_from_trace says. After damage reading goes on
// (TraceReader::OnDamage), and no count is taken that might not be what its flush says: snapshots
// hold all since the start, so a later one makes up for those that are missing, but data whose flush
// or desc is missing is left out, and what breaks the law of trace.h then is damage, too.
#pragma once

#include <string>
#include <vector>

#include "profile/base/bytes.h"
#include "uptier/profile.h"

namespace uptier::profile {

struct TraceRead {
  uptier::TraceProfile trace;
  std::vector<std::string> warnings;  // what was left out and why, with offsets; the first ones
  uint64_t damaged = 0;               // how many there were
};

// Fails, with offset and rule, where nothing is a trace, and where one that is whole breaks a law.
Result<TraceRead> read_trace(ByteSpan file);

}  // namespace uptier::profile
