// read_trace.h: the profile of a trace, damaged or not.
//
// Law: for an undamaged trace it equals profile_from_trace. After damage, reading continues
// (TraceReader::OnDamage), and a count is only taken if it is certain to belong to its flush:
// snapshots hold everything since the start, so a later one replaces missing ones. Data without its
// flush or desc is left out, and after damage a broken law of trace.h counts as damage, too.
#pragma once

#include <string>
#include <vector>

#include "profile/base/bytes.h"
#include "uptier/profile.h"

namespace uptier::profile {

struct TraceRead {
  uptier::TraceProfile trace;
  std::vector<std::string>
      warnings;          // what was left out and why, with offsets; only the first ones
  uint64_t damaged = 0;  // the number of all damages
};

// Fails, with offset and rule, if this is not a trace, or if an undamaged one breaks a law.
Result<TraceRead> read_trace(ByteSpan file);

}  // namespace uptier::profile
