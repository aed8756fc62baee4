// upf/trace_info.h: a trace as one of the runs that a file sums up.
#pragma once

#include "profile/base/bytes.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// Names a trace by its bytes, so that it counts only once.
uptier::UploadId trace_id(ByteSpan trace);

// Returns the origin of a trace's profile: one run, with its engine, the interval (0 if it changed)
// and how gaps were drawn; the modules are those of the profile. Traces have no time. Cost: reads
// the events again.
uptier::ProfileInfo trace_info(ByteSpan trace, const uptier::Profile& profile);

// Returns when methods were first called in the run of the trace; it does not have callers.
uptier::CallProfile calls_of(const uptier::TraceProfile& trace);

}  // namespace uptier::profile
