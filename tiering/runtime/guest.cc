#include "tiering/runtime/guest.h"

namespace uptier::tiering {

Guest::Guest(Engine& engine, GuestWaits& waits)
    : waits(waits),
      notes(engine, waits),
      counters(notes),
      samples(engine, waits, notes),
      unattached(engine),
      events(engine, notes, samples),
      calls(engine, waits, notes, counters, samples, unattached, events),
      trial_calls(engine, waits, calls),
      loops(engine, waits, notes, counters, samples),
      baseline_frames(engine, waits),
      moves(engine, waits),
      rounds(engine, waits, samples, moves),
      osr_exit(engine, waits, baseline_frames, moves, rounds),
      deopt(engine, waits, notes, baseline_frames, osr_exit),
      invoker(engine, waits),
      osr_entry(engine, waits, notes, counters, samples, invoker) {}

}  // namespace uptier::tiering
