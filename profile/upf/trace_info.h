// upf/trace_info.h: a trace as one of the runs that a file sums up.
#pragma once

#include "profile/base/bytes.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// Names a trace by its bytes, so that it counts once however often it comes.
uptier::UploadId trace_id(ByteSpan trace);

// Returns what a trace says of where its profile comes from: one run, by its engine, the interval
// (0 if it changed) and how gaps were drawn; the modules are those of the profile. Traces have no
// time. Cost: reads the events once more.
uptier::ProfileInfo trace_info(ByteSpan trace, const uptier::Profile& profile);

// Returns when methods were called first, as that run of the trace says it: nothing of callers.
uptier::CallProfile calls_of(const uptier::TraceProfile& trace);

}  // namespace uptier::profile
