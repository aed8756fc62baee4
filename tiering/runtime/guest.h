// Guest: the code that runs below guest frames: calls, loop headers, exits, traps of compiled code.
//
// The law of every class here:
// - nothing throws: each member that compiled code reaches is noexcept
// - nothing takes a lock or waits, except through GuestWaits, which counts it
// - nothing is allocated or logged
// - each path is idempotent: another thread may have handled the event already
//
// The data of a method that a path reads is constant, atomic, or the calling thread's own
// (model/method.h).
//
//   Thread: any that runs guest code.
#pragma once

#include "tiering/runtime/baseline_frames.h"
#include "tiering/runtime/call_events.h"
#include "tiering/runtime/counters.h"
#include "tiering/runtime/deopt.h"
#include "tiering/runtime/frame_moves.h"
#include "tiering/runtime/guest_calls.h"
#include "tiering/runtime/guest_loops.h"
#include "tiering/runtime/invoker.h"
#include "tiering/runtime/notes.h"
#include "tiering/runtime/observed_rounds.h"
#include "tiering/runtime/optimized_samples.h"
#include "tiering/runtime/osr_entry.h"
#include "tiering/runtime/osr_exit.h"
#include "tiering/runtime/trial_calls.h"
#include "tiering/runtime/unattached_calls.h"

namespace uptier::tiering {

class GuestWaits;

struct Guest {
  // Both outlive this.
  Guest(Engine& engine, GuestWaits& waits);

  const GuestWaits& waits;
  Notes notes;
  Counters counters;
  OptimizedSamples samples;
  UnattachedCalls unattached;
  CallEvents events;
  GuestCalls calls;
  TrialCalls trial_calls;
  GuestLoops loops;
  BaselineFrames baseline_frames;
  FrameMoves moves;
  ObservedRounds rounds;
  OsrExit osr_exit;
  Deopt deopt;
  Invoker invoker;
  OsrEntry osr_entry;
};

}  // namespace uptier::tiering
