// profile_json.h: a profile for programs. Keys are the field names of uptier/profile.h and the word
// names of its text form.
//
// What was estimated is an object {"count", "estimate", "low", "high"}: the raw number, the
// weighted one, and the interval that holds the true one with about 95 %. Sums of values have up to
// 128 bits and are decimal strings. What is not known is null. "inlined" has the bodies that are
// inlined: "root", "path" of calls from there, each with the "cfg_hash" of its code, and "blocks".
#pragma once

#include <string>

#include "uptier/profile.h"
#include "uptier/profile_file.h"

namespace uptier::tools {

std::string profile_json(const Profile& profile);

// The same with "provenance", "shapes" of code, "calls" between methods, "first_calls", and the
// "time" of call paths (time_json.h): all that a file knows but the log and the timeline.
std::string profile_json(const ProfileFile& file);

// The same with what else a trace says: "truncated", "skipped" and "lost".
std::string profile_json(const TraceProfile& trace);

}  // namespace uptier::tools
