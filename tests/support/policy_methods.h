// Methods to ask the policy about.
#pragma once

#include "tiering/policy/policy.h"

namespace uptier::tiering {

// 100 instructions: a compilation costs 250 us, and with a speedup of 3 it pays from 375 us on,
// which are 3,750 calls that run every instruction once.
inline MethodSnapshot method() {
  MethodSnapshot m;
  m.instructions = 100;
  m.loops = 1;
  m.calls = 3751;
  m.samples = 0;
  return m;
}
// The same work as seen by samples.
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

// In optimized code that has run for long since, and of which 30 % are laid out wrongly.
inline void drifted(MethodSnapshot& m) {
  m.tier = Tier::kOptimized;
  m.optimized_versions = 1;
  m.sampled_work = 1'000'000;
  m.version_calls = 900;
  m.drift = 0.3;
  m.drift_samples = 256;
}

}  // namespace uptier::tiering
