// loop_table.h: what loops took, for people and for programs.
//
// The rows are those of Runtime::loops(), in its order, without loops that were never entered.
// Text has one line per loop, with '-' for unknown numbers. CSV follows RFC 4180, with a header line;
// JSON is an array of objects. Both have the numbers in full, unknown ones empty (null), and offsets
// in decimal. If every execution was timed (loop_dual), the total is shown beside the extrapolated
// one, with the relative difference (`off`, `error`).
#pragma once

#include <span>
#include <string>

#include "uptier/report.h"

namespace uptier::tools {

std::string loops_text(std::span<const LoopReport> loops);
std::string loops_json(std::span<const LoopReport> loops);
std::string loops_csv(std::span<const LoopReport> loops);

// Returns single executions as they were timed: method, loop, offset of its code, cycles (or what the
// unit is), thread.
std::string executions_json(std::span<const LoopExecution> executions,
                            std::span<const LoopReport> loops);

}  // namespace uptier::tools
