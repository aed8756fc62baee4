// Flushed: the counts that threads have handed over for a method, and what follows from them.
//
//   notes --Observer--> streams --windows--> convergence --RateControl--> adaptation
//                                               | drift
//                                               v
//                                           seen_phase
//
// Law: made when something is first handed over, or a copy that counts comes into service; never
// taken away. Before that it reads as no calls, no samples, still learning.
//
//   Thread: with the runtime's state mutex, all of it.
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

// What one thread has flushed of a method, or all that have gone (stream_recorder.h). Cumulative.
// If threads share their counters, the counts are in a stream of their own, of thread 0.
struct Stream {
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;
  uint64_t iterations = 0;
  uint64_t bursts = 0;
  uint32_t flushes = 0;
  bool described = false;       // its InstrumentationDesc went to the sink
  uint64_t interval = 0;        // of its windows, if they all had one
  bool mixed = false;           // they had not
  std::vector<uint64_t> words;  // of the slab
  std::vector<uint64_t> traps;  // frames that traps unwound, by block site - 1
  profile::Observed seen;       // what these mean, and what they stand for
  profile::Coverage coverage;   // what that was counted in
  double dual_error = 0;
  bool ended = false;  // of threads that have gone: `seen` is all there is, and stands for all
  profile::StreamSum::Ran sampled;  // likewise: of these, what those ran that had samples
  std::vector<jit::AllExecutions> executions;  // of loops, with loop_dual
};

// Set in the number of a thread's stream that holds samples of optimized code.
inline constexpr uint32_t kOptimizedStream = 1u << 31;
// The number of the stream of threads that have gone.
inline constexpr uint32_t kEndedStream = kOptimizedStream - 1;

// The counts of all threads together for a body at one place where it is inlined.
struct SeenInPlace {
  std::map<SiteId, InlinedBlock> blocks;
  InlinedSites sites;
};
using InlinedSeen = std::map<jit::InlinePath, SeenInPlace>;

// The same as the trace has it: one for each path and set of slots that copies counted there.
struct InlinedStream {
  uint32_t number = 0;  // among those of the method it is inlined into
  Schema schema;
  profile::Observed seen;  // of blocks
  InlinedSites sites;
  uint64_t samples = 0;  // of the root's copies that counted it
  uint64_t weight = 0;   // that the last of them had
  uint32_t flushes = 0;
  bool described = false;
};
using InlinedStreams =
    std::map<std::pair<jit::InlinePath, std::vector<std::pair<SlotKind, SiteId>>>, InlinedStream>;

// The state of a method in the adaptive schedule; see rate_control.h.
struct Adaptation {
  enum class Phase : uint8_t { kLearning, kKnown, kLooking };
  Phase phase = Phase::kLearning;
  bool resting = false;  // known so well that its instrumented copy has gone
  uint32_t windows = 0;  // that its convergence had compared when the look began
  uint32_t burst = 0;  // iterations of a slot of its loops, from when it is observed on; 0: options
  double next_look = 0;       // while it rests: opportunities at which a look is due
  double drift = 0;           // distance of a window that the policy has not been asked about yet
  sampler::Progress gone;     // of threads that have detached
  sampler::Progress at_tick;  // of all threads, at the last tick
};

// The counts that code is made from after the program's behavior has changed; see phase.h.
struct SeenPhase {
  std::vector<uint64_t> blocks;  // by block site - 1, from windows of optimized code; or empty
  double error = 1;              // how far these may lie from the truth
  std::map<jit::InlinePath, jit::InlinedBlocks> inlined;     // the same windows of inlined bodies
  TargetsBySite targets;                                     // and of its own indirect calls
  std::map<jit::InlinePath, TargetsBySite> inlined_targets;  // and of those of inlined bodies
  std::vector<uint64_t> before;  // estimates when baseline code drifted; or empty
  uint64_t samples_before = 0;
};

struct Flushed {
  std::map<uint32_t, Stream> streams;  // by thread number
  // Likewise, of the same streams.
  std::map<uint32_t, ForgottenTargets> forgotten_targets;
  InlinedSeen inlined_seen;
  InlinedStreams inlined_streams;
  uint32_t inlined_numbers = 0;  // of inlined_streams so far
  bool ticked = false;           // so ticks look at it
  sampler::Convergence convergence;
  Adaptation adaptation;
  MadeLater<SeenPhase> seen_phase;
};

}  // namespace uptier::tiering
