// loop_table.h: what loops took, for people and for programs.
//
// The rows are those of Runtime::loops(), in its order, without loops that were never entered.
// Text has one line a loop; where no number is known stands a '-'. CSV is RFC 4180's, with a header
// line; JSON an array of objects. Both have the numbers in full, and nothing (null) where text has
// '-'; offsets are decimal there. Where every execution was timed (loop_dual), what they took
// together stands beside what was extrapolated, and by how much that is above (`off`, `error`).
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
