// events.h: `uptier run --events FILE`: what the host of a run and its runtime do, told to a tool that
// writes it.
#pragma once

#include <string>

namespace uptier::tools {

// Loads the dispatcher and the tool for this file: FILE.json is a trace for ui.perfetto.dev, FILE.jsonl
// has one line of JSON for each event, any other is a table of counts. Call it before the program is
// linked. Without a file UPTIER_TRACE decides (uptier_trace_init). Returns kOk; on
// failure prints a message and returns an exit code.
int start_events(const std::string& file);

// Has the tools write what they have. No guest may run any more. Returns kFailed, after a message, if
// events are lost.
int finish_events();

}  // namespace uptier::tools
