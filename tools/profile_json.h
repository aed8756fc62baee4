// profile_json.h: a profile for programs. Keys are the field names of uptier/profile.h and the word
// names of its text form.
//
// An estimate is an object {"count", "estimate", "low", "high"}: the raw number, the weighted one, and
// the interval that contains the true one with a probability of about 95 %. Sums of values have up to
// 128 bits and are decimal strings. Unknown numbers are null. "inlined" has the inlined bodies:
// "root", "path" of calls from there, each with the "cfg_hash" of its code, and "blocks".
#pragma once

#include <string>

#include "uptier/profile.h"
#include "uptier/profile_file.h"

namespace uptier::tools {

std::string profile_json(const Profile& profile);

// The same with "provenance", "shapes" of code, "calls" between methods, "first_calls", and the
// "time" of call paths (time_json.h): all that a file knows but the log and the timeline.
std::string profile_json(const ProfileFile& file);

// The same with the other fields of a trace: "truncated", "skipped" and "lost".
std::string profile_json(const TraceProfile& trace);

}  // namespace uptier::tools
