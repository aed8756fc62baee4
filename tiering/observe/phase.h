// The counts that code is made from, once a program's behavior has changed.
//
//   baseline code drifted   what was counted since, as soon as it is kPhaseSamples samples; until
//                           then all that was ever seen
//   optimized code drifted  the windows of its copy since; what the copy does not count (a block
//                           that was removed) keeps its share of all that was ever seen
//
// Either way they are scaled to all that was ever seen, so that frequencies of different methods
// stay comparable. Of what is inlined, and of the method's own indirect calls, the windows say what
// the next version takes them to do, whatever the inlined method does elsewhere
// (InlineeSource::find_blocks, find_targets).
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <vector>

#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"

namespace uptier::tiering {

// Returns estimated executions by block site - 1, for the compiler; empty when too little is known.
std::vector<uint64_t> blocks_to_compile_from(const Method& m, const Estimates& estimates);

// Returns how far the shares of a saved profile's counts may lie from what they are a sample of; at most
// 1, which it is without a sample.
double draw_error(const std::vector<double>& counts, double samples);

// Returns how far the shares of these may lie from the truth.
double profile_error(const Method& m, const std::vector<uint64_t>& blocks);

// Baseline code has drifted: what was seen up to here is of another phase.
void begin_phase(Method& m, const Estimates& estimates);
// Optimized code has drifted: the next version is made from the windows of its copy.
void begin_copy_phase(Method& m, const Estimates& estimates);
// The same of the version that frames stay in at the loop of `copy`, whose windows are `o`: what lies
// outside of the loop keeps what is known of it.
void begin_loop_phase(Method& m, const Version& copy, CopyWindows& o, const Estimates& estimates);

}  // namespace uptier::tiering
