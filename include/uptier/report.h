// report.h: what the runtime did, as plain data and as a table for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "uptier/host.h"
#include "uptier/ids.h"

namespace uptier {

// One decision of the policy, in the order in which they were made.
struct DecisionRecord {
  uint64_t sequence = 0;
  MethodId method;
  std::string method_name;
  std::string action;  // keep, recompile, specialize, ...
  std::string reason;  // in words, with the figures that decided
  uint64_t calls = 0;
  uint64_t samples = 0;
  uint64_t loop_iterations = 0;
  double priority = 0;
};

// One compiled body, in service or not any more.
struct VersionReport {
  Tier tier = Tier::kBaseline;
  Copy copy = Copy::kPlain;
  LoopId osr_loop;  // the loop at which it is entered; none for a normal version
  uint64_t code_bytes = 0;
  uint64_t compile_ns = 0;
  bool retired = false;
  bool freed = false;
};

struct MethodReport {
  MethodId method;
  MethodKey key;
  std::string name;
  uint64_t hash = 0;        // of key and name: what Options::opt_range selects by
  Tier tier = Tier::kHost;  // of the code that calls reach now
  uint64_t calls = 0;       // counted by the stub
  uint64_t sampled_calls = 0;
  uint64_t loop_iterations = 0;  // counted by the checks at loop headers
  uint64_t bursts = 0;
  uint64_t flushes = 0;
  uint64_t osr_entries = 0;
  // With CounterMode::kDual: sum |scalable - exact| / sum exact over its counters, as of the last
  // flush. Else 0.
  double counter_error = 0;
  std::vector<VersionReport> versions;
  std::string last_error;  // of a compilation that failed; the method runs on in what it has
};

// Everything that was lost or refused, so that nothing is hidden.
struct LossReport {
  uint64_t samples_without_copy = 0;  // due while the instrumented copy was not ready
  uint64_t slabs_refused = 0;         // slab_budget spent
  uint64_t flushes_delayed = 0;       // ring full; the next snapshot carries the counts
  uint64_t requests_dropped = 0;      // queue full
  uint64_t compiles_failed = 0;
  uint64_t code_refused = 0;  // code_budget spent
  uint64_t evictions = 0;     // methods that gave up their code for others; made again when called
  uint64_t sink_errors = 0;
};

// How often each kind of stress switch forced something; a stress run with 0 tested nothing.
struct StressReport {
  uint64_t osr_points = 0;
  uint64_t osr_forced = 0;
  uint64_t copy_points = 0;
  uint64_t copy_forced = 0;
  uint64_t guard_points = 0;
  uint64_t guard_forced = 0;
  uint64_t compile_points = 0;
  uint64_t compile_forced = 0;
  uint64_t code_points = 0;
  uint64_t code_forced = 0;
  uint64_t delay_points = 0;
  uint64_t delay_forced = 0;
  uint64_t flip_points = 0;
  uint64_t flip_forced = 0;
};

struct Report {
  std::vector<MethodReport> methods;  // those that were ever called, most calls first
  std::vector<DecisionRecord> decisions;
  LossReport losses;
  StressReport stress;
  uint64_t methods_registered = 0;
  uint64_t code_bytes_in_service = 0;
  uint64_t code_bytes_freed = 0;
  uint64_t compile_ns_total = 0;

  // Returns the report as a table for people, `methods_shown` methods at most (0: all).
  std::string text(size_t methods_shown = 30) const;
};

}  // namespace uptier
