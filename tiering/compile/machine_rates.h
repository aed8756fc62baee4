// MachineRates: what compiling and running take on this machine, and what has been spent on compiling.
//
//   compile_ns   begins at what is assumed, or at what calibrate() measured; then CompileRate
//   baseline_ns  likewise; then BaselineRate, by trials
//   speedup      begins at what is assumed; then SpeedupRate, by trials
//
// A rate that an embedder has set to another value than its default stays as it is. Without measure_rates
// all rates stay as they are assumed.
//
//   Thread: the caller holds the runtime's state mutex; calibrate() takes it.
#pragma once

#include <cstdint>
#include <optional>

#include "jit/code/code_space.h"
#include "jit/compile/compile.h"
#include "sampler/cost.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/model/method_table.h"
#include "tiering/policy/baseline_rate.h"
#include "tiering/policy/compile_rate.h"
#include "tiering/policy/policy.h"
#include "tiering/policy/speedup_rate.h"
#include "uptier/options.h"

namespace uptier::tiering {

class MachineRates {
 public:
  // All outlive this. `live`: what of the options changes.
  MachineRates(const Options& options, const Options& live, const MethodTable& methods);

  // Measures, before there is anything to decide; the worker's, once. `clock`: what it knows of the
  // time stamp counter, if it does. Cost: compiles three small bodies and runs one of them a few times;
  // a clock that is not known takes what CycleClock::calibrate does.
  void calibrate(const jit::Helpers& helpers, jit::CodeSpace& space, WaitedMutex& state_mutex,
                 std::optional<sampler::CycleClock> clock);

  // Adds what a version of a method took to compile, which comes into service.
  void note_compiled(const Method& m, const Version& v);
  // Returns whether one more trial of a method's first optimized version may begin, and counts it.
  bool begin_trial() { return speedup_.begin(); }
  // Adds what a trial has found: how many times as fast as baseline code optimized code was.
  void note_speedup(double ratio) { speedup_.add(ratio); }
  // Likewise: the cycles of one call of baseline code, and the instructions that it executes.
  void note_baseline(double instructions, double cycles) {
    baseline_rate_.add(instructions, cycles * ns_per_cycle_);
  }

  // Says in a snapshot what is known of a method of so many instructions.
  void tell(uint64_t instructions, SystemSnapshot& s) const;

  // Of optimizing, ns an instruction; and of all compilations, in ns.
  double compile_ns() const { return compile_rate_.ns(); }
  uint64_t compile_ns_total() const { return compile_ns_total_; }
  // Bytes of code that calibrate() had freed, which was no method's.
  uint64_t bytes_freed() const { return calibration_bytes_; }

 private:
  uint64_t inlined_size(const Version& v) const;

  const Options& options_;
  const Options& live_;
  const MethodTable& methods_;
  CompileRate compile_rate_;
  SpeedupRate speedup_;
  BaselineRate baseline_rate_;
  double ns_per_cycle_ = 0;  // of the time stamp counter; 0: not known yet
  uint64_t compile_ns_total_ = 0;
  uint64_t calibration_bytes_ = 0;
};

}  // namespace uptier::tiering
