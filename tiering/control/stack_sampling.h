// StackSampling: switches the stack samples of threads on and off, and reads the rings.
//
//   sample_hz 0 -> hz   each thread gets a clock and a ring, unless it has them, and the clock starts
//             hz -> 0   clocks stop; the rings and the results stay
//
// The law: code is not freed while a record in a ring refers to it, or while a walk may be reading
// it. So before code is freed, the rings are drained, the code is hidden from walks, and walks in
// progress are waited for (some microseconds).
//
//   Thread: the caller holds the state mutex; ticks(): any.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "jit/code/code_space.h"
#include "jit/code/routines.h"
#include "jit/code/stubs.h"
#include "sampler/host_code.h"
#include "tiering/base/log.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/sample_signal.h"
#include "tiering/model/threads.h"
#include "tiering/observe/kept_code.h"
#include "tiering/observe/stack_samples.h"
#include "uptier/code_image.h"
#include "uptier/options.h"
#include "uptier/stack_time.h"

namespace uptier::tiering {

struct Version;

class StackSampling {
 public:
  // Its dependencies; all outlive it. `space`, `stubs` and `routines` are made before the first
  // thread attaches.
  struct Parts {
    const Options& options;
    const Options& live;  // the options with later changes
    const Log& log;
    const Threads& threads;
    const MethodTable& methods;
    const std::unique_ptr<jit::CodeSpace>& space;
    const std::unique_ptr<jit::StubTable>& stubs;
    const jit::Routines& routines;
  };
  explicit StackSampling(const Parts& parts);

  // Says whether rings must be drained from time to time.
  bool ticks() const noexcept { return on_.load(std::memory_order_relaxed); }
  // The calling thread has attached; it detaches.
  void thread_came(AttachedThread& t);
  void thread_goes(AttachedThread& t) UPTIER_REQUIRES(state_lock);
  // Applies live.sample_hz. Errors: kIo, kInvalidArgument; then nothing is sampled.
  Status change_rate() UPTIER_REQUIRES(state_lock);
  // Reads all records in the rings.
  void drain() noexcept UPTIER_REQUIRES(state_lock);
  // Does that, and keeps the code if Options::keep_code asks for it. Call it before it is freed.
  void before_free(std::span<Version* const> versions) noexcept UPTIER_REQUIRES(state_lock);
  // Returns the methods that samples have met for the first time, since the last call.
  std::vector<MethodId> take_met() { return std::exchange(met_, {}); }
  // Returns the results and losses so far. Of a program with many call paths, these are most of it.
  enum class Paths : uint8_t { kAll, kNone };
  TimeReport report(Paths paths = Paths::kAll) UPTIER_REQUIRES(state_lock);
  // Returns the time of call paths, up to now, for the profile file.
  TimeProfile profile() UPTIER_REQUIRES(state_lock);
  // Returns the kept code and samples; empty without Options::keep_code.
  CodeImages code_images() UPTIER_REQUIRES(state_lock);

 private:
  Status begin(AttachedThread& t);
  void drain(AttachedThread& t) UPTIER_REQUIRES(state_lock);
  void note_met() UPTIER_REQUIRES(state_lock);
  sampler::StackSampler::Counts counts() const UPTIER_REQUIRES(state_lock);
  void say_fallback(const AttachedThread& t);

  const Parts parts_;
  sampler::HostCode host_;
  SampleSignal signal_;  // before the threads are destroyed
  StackSamples samples_;
  std::unique_ptr<KeptCode> kept_;  // null without Options::keep_code
  std::vector<MethodId> met_;
  std::atomic<bool> on_{false};
  bool ever_ = false;       // some thread was sampled at some time
  bool fell_back_ = false;  // and this was logged
  SampleEngine engine_ = SampleEngine::kTaskClock;
  sampler::StackRecord record_;         // the record being read
  sampler::StackSampler::Counts gone_;  // of threads that have detached
};

}  // namespace uptier::tiering
