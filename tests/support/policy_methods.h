// Snapshots of methods, as input of the policy.
#pragma once

#include "tiering/policy/policy.h"

namespace uptier::tiering {

// A method of 100 instructions: compiling takes 250 us and, with a speedup of 3, pays off from 375
// us of run time on, which are 3,750 calls that run every instruction once.
inline MethodSnapshot method() {
  MethodSnapshot m;
  m.instructions = 100;
  m.loops = 1;
  m.calls = 3751;
  m.samples = 0;
  return m;
}
// The same amount of work, known from samples.
inline MethodSnapshot sampled(uint64_t work, uint64_t samples = 10) {
  MethodSnapshot m = method();
  m.calls = 1000;
  m.samples = samples;
  m.sampled_share = 1.0 / 16;
  m.sampled_work = work / 16;
  return m;
}
inline Decision ask(const MethodSnapshot& m, const SystemSnapshot& s = {},
                    const PolicyOptions& o = {}) {
  return decide(m, s, o);
}

// Changes the snapshot: the optimized code has run for long since, and 30 % of it is laid out
// wrongly.
inline void drifted(MethodSnapshot& m) {
  m.tier = Tier::kOptimized;
  m.optimized_versions = 1;
  m.sampled_work = 1'000'000;
  m.version_calls = 900;
  m.drift = 0.3;
  m.drift_samples = 256;
}

}  // namespace uptier::tiering
