// Flushed: the counts that threads have flushed for a method, and the data derived from them.
//
//   notes --Observer--> streams --windows--> convergence --RateControl--> adaptation
//                                               | drift
//                                               v
//                                           seen_phase
//
// Law: made by the first flush, or when a copy that counts is installed; never removed. Before that
// it reads as no calls, no samples, still learning.
//
//   Thread: all of it with the runtime's state mutex.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "jit/opt/inlinee.h"
#include "profile/algebra/rake.h"
#include "profile/data/estimate.h"
#include "sampler/convergence.h"
#include "sampler/schedule.h"
#include "tiering/base/made_later.h"
#include "tiering/model/probe_set.h"
#include "tiering/model/version.h"
#include "uptier/profile.h"

namespace uptier::tiering {

// The flushed counts of a method from one thread, or from all ended threads (stream_recorder.h).
// Cumulative. If threads share counters, the counts are in a separate stream, with thread number 0.
struct Stream {
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;
  uint64_t iterations = 0;
  uint64_t bursts = 0;
  uint32_t flushes = 0;
  bool described = false;       // its InstrumentationDesc went to the sink
  uint64_t interval = 0;        // of its windows, if all had the same
  bool mixed = false;           // the windows had different intervals
  std::vector<uint64_t> words;  // of the slab
  std::vector<uint64_t> traps;  // frames that traps unwound, by block site - 1
  profile::Observed seen;       // decoded counts, with estimates
  profile::Coverage coverage;   // the samples and opportunities of these
  double dual_error = 0;
  bool ended = false;  // the stream of ended threads: `seen` is complete, and stands for everything
  profile::StreamSum::Ran sampled;  // only for that stream: the part of those threads that had
                                    // samples
  std::vector<jit::AllExecutions> executions;  // of loops, with loop_dual
};

// Set in the number of a thread's stream that holds samples of optimized code.
inline constexpr uint32_t kOptimizedStream = 1u << 31;
// The number of the stream of ended threads.
inline constexpr uint32_t kEndedStream = kOptimizedStream - 1;

// The counts of all threads together for an inlined body at one place.
struct SeenInPlace {
  std::map<SiteId, InlinedBlock> blocks;
  InlinedSites sites;
  std::vector<double> beside;  // estimates of the root's blocks in the same windows, by site - 1
};
using InlinedSeen = std::map<jit::InlinePath, SeenInPlace>;

// The same for the trace: one for each path and set of slots that copies counted there.
struct InlinedStream {
  uint32_t number = 0;  // within the method it is inlined into
  Schema schema;
  profile::Observed seen;  // of blocks
  InlinedSites sites;
  uint64_t samples = 0;  // in the root's copies that counted it
  uint64_t weight = 0;   // the weight of the last of them
  uint32_t flushes = 0;
  bool described = false;
};
using InlinedStreams =
    std::map<std::pair<jit::InlinePath, std::vector<std::pair<SlotKind, SiteId>>>, InlinedStream>;

// The state of a method in the adaptive schedule; see rate_control.h.
struct Adaptation {
  enum class Phase : uint8_t { kLearning, kKnown, kLooking };
  Phase phase = Phase::kLearning;
  bool resting = false;  // known so well that its instrumented copy was removed
  uint32_t windows = 0;  // number of windows compared when the look began
  uint32_t burst = 0;    // iterations per slot of its loops, set when observation begins; 0: as in
                         // the options
  double next_look = 0;  // while it rests: the number of opportunities at which a look is due
  double drift = 0;      // distance of a window that the policy has not been asked about yet
  sampler::Progress gone;     // of threads that have detached
  sampler::Progress at_tick;  // of all threads, at the last tick
};

// The counts that code is made from after the program's behavior has changed; see phase.h.
struct SeenPhase {
  std::vector<uint64_t> blocks;  // by block site - 1, from windows of optimized code; or empty
  double error = 1;              // bound on their distance from the truth
  std::map<jit::InlinePath, jit::InlinedBlocks> inlined;     // the same windows of inlined bodies
  TargetsBySite targets;                                     // and of its own indirect calls
  std::map<jit::InlinePath, TargetsBySite> inlined_targets;  // and of those of inlined bodies
  std::vector<uint64_t> before;  // estimates when baseline code drifted; or empty
  uint64_t samples_before = 0;
};

struct Flushed {
  std::map<uint32_t, Stream> streams;  // by thread number
  // By thread number, for the same streams.
  std::map<uint32_t, ForgottenTargets> forgotten_targets;
  InlinedSeen inlined_seen;
  InlinedStreams inlined_streams;
  uint32_t inlined_numbers = 0;  // the last number used in inlined_streams
  bool ticked = false;           // it is in the list of ticks
  sampler::Convergence convergence;
  Adaptation adaptation;
  MadeLater<SeenPhase> seen_phase;
};

}  // namespace uptier::tiering
