// Sums over the streams of a method.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>

#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "uptier/options.h"

#include <cstdint>

namespace uptier::tiering {

// Totals of a method, over threads.
struct Totals {
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;
  uint64_t iterations = 0;
  uint64_t bursts = 0;
};

inline Totals totals(const Method& m) UPTIER_REQUIRES(state_lock) {
  Totals t;
  for (const auto& [thread, s] : m.flushed->streams) {
    t.calls += s.calls;
    t.sampled_calls += s.sampled_calls;
    t.iterations += s.iterations;
    t.bursts += s.bursts;
  }
  return t;
}

// A body of one block has no copy that samples could run: every call counts as a sample.
inline uint64_t samples_in(const Totals& t, const Method& m) UPTIER_REQUIRES(state_lock) {
  return (m.probes->counts_by_calls() ? t.calls : t.sampled_calls) + t.bursts;
}

// Says whether estimates are scaled to all opportunities. Also with a fixed interval: until there
// is a copy to run, due samples are skipped, and the estimates would lack them. At interval 1,
// counts are exact as they are.
inline bool is_brought_to_all(const Options& o) UPTIER_REQUIRES(state_lock) {
  return o.adaptive || o.interval > 1;
}

// If the method has windows of optimized code too, those of baseline code do not stand for all
// calls.
inline bool has_optimized_stream(const Method& m) UPTIER_REQUIRES(state_lock) {
  return !m.flushed->streams.empty() &&
         (m.flushed->streams.rbegin()->first & kOptimizedStream) != 0;
}

// Says whether the samples of a method's streams stand for all opportunities.
inline bool stand_for_all(const Method& m, const Options& o) UPTIER_REQUIRES(state_lock) {
  return is_brought_to_all(o) && !m.probes->counts_by_calls() && !has_optimized_stream(m);
}

}  // namespace uptier::tiering
