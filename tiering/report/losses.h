// each_loss: calls a function with each figure of a LossReport and its name, for code that writes
// them all.
#pragma once

#include "uptier/report.h"

namespace uptier::tiering {

template <typename F>
void each_loss(const LossReport& l, F f) {
  f("samples_without_copy", l.samples_without_copy);
  f("slabs_refused", l.slabs_refused);
  f("flushes_delayed", l.flushes_delayed);
  f("flushes_lost", l.flushes_lost);
  f("requests_dropped", l.requests_dropped);
  f("compiles_failed", l.compiles_failed);
  f("code_refused", l.code_refused);
  f("evictions", l.evictions);
  f("polls_refused", l.polls_refused);
  f("methods_forgotten", l.methods_forgotten);
  f("decisions_forgotten", l.decisions_forgotten);
  f("versions_forgotten", l.versions_forgotten);
  f("calls_unattached", l.calls_unattached);
  f("keys_shared", l.keys_shared);
  f("unstable_bodies", l.unstable_bodies);
  f("traps_lost", l.traps_lost);
  f("trace_events_lost", l.trace_events_lost);
  f("log_records", l.log_records);
  f("stack_samples", l.stack_samples);
  f("code_names_lost", l.code_names_lost);
  f("loops_full", l.loops_full);
  f("loops_stale", l.loops_stale);
  f("loops_spoiled", l.loops_spoiled);
}

}  // namespace uptier::tiering
