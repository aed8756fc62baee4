// MachineRates: the speed of compiling and running on this machine, and the total time of
// compilations.
//
//   compile_ns   starts with an assumption or a measurement of calibrate(); then CompileRate
//   baseline_ns  the same; then BaselineRate, by trials
//   speedup      starts with an assumption; then SpeedupRate, by trials
//
// A rate that an embedder has changed from its default stays as it is. Without measure_rates, all
// rates stay as assumed.
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
  // All outlive this. `live`: the options with later changes.
  MachineRates(const Options& options, const Options& live, const MethodTable& methods);

  // Measures, before there is anything to decide; the worker calls it once. `clock`: the known rate
  // of the time stamp counter, if any. Cost: compiles three small bodies and runs one of them a few
  // times; without `clock`, also CycleClock::calibrate.
  void calibrate(const jit::Helpers& helpers, jit::CodeSpace& space, WaitedMutex& state_mutex,
                 std::optional<sampler::CycleClock> clock);

  // Adds the compile time of a version that is being installed.
  void note_compiled(const Method& m, const Version& v);
  // Says whether one more trial of a method's first optimized version may begin, and counts it.
  bool begin_trial() { return speedup_.begin(); }
  // Adds the result of a trial: optimized code was `ratio` times as fast as baseline code.
  void note_speedup(double ratio) { speedup_.add(ratio); }
  // The same: the cycles of one call of baseline code, and the instructions that it executes.
  void note_baseline(double instructions, double cycles) {
    baseline_rate_.add(instructions, cycles * ns_per_cycle_);
  }

  // Fills in the rates, for a method with so many instructions.
  void tell(uint64_t instructions, SystemSnapshot& s) const;

  // Fills in the rate of baseline code for a decision that is made before it is measured, if it will
  // be; the option's default is for runs in which nothing is measured, and several times too long.
  void assume(SystemSnapshot& s) const;

  // Optimizing time in ns per instruction; and the time of all compilations, in ns.
  double compile_ns() const { return compile_rate_.ns(); }
  uint64_t compile_ns_total() const { return compile_ns_total_; }
  // Bytes of code of calibrate() that were freed; they belonged to no method.
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
