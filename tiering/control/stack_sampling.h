// StackSampling: switches the stack samples of threads on and off, and takes them out of the rings.
//
//   sample_hz 0 -> hz   each thread gets clock and ring, unless it has them, and the clock starts
//             hz -> 0   clocks stop; rings and what was seen stay
//
// The law: no code is freed that a record in a ring names, or that a walk may be looking at. So before code
// is freed, the rings are drained, the code is taken out of reach of walks, and walks that are under way are
// waited for (some microseconds).
//
//   Thread: the caller holds the state mutex; ticks() any.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "jit/code/code_space.h"
#include "jit/code/routines.h"
#include "jit/code/stubs.h"
#include "sampler/host_code.h"
#include "tiering/base/log.h"
#include "tiering/model/sample_signal.h"
#include "tiering/model/threads.h"
#include "tiering/observe/stack_samples.h"
#include "uptier/options.h"
#include "uptier/stack_time.h"

namespace uptier::tiering {

struct Version;

class StackSampling {
 public:
  // What it works on; all outlive it. `space`, `stubs` and `routines` are made before the first thread comes.
  struct Parts {
    const Options& options;
    const Options& live;  // what of the options changes
    const Log& log;
    const Threads& threads;
    const MethodTable& methods;
    const std::unique_ptr<jit::CodeSpace>& space;
    const std::unique_ptr<jit::StubTable>& stubs;
    const jit::Routines& routines;
  };
  explicit StackSampling(const Parts& parts)
      : parts_(parts), signal_(sample_signal(parts.options)), samples_(parts.methods) {}

  // Returns whether rings are to be drained from time to time.
  bool ticks() const noexcept { return on_.load(std::memory_order_relaxed); }
  // The calling thread has come, and goes.
  void thread_came(AttachedThread& t);
  void thread_goes(AttachedThread& t);
  // Does what live.sample_hz says. Errors: kIo, kInvalidArgument; nothing is sampled then.
  Status change_rate();
  // Takes what is in the rings.
  void drain();
  // These are about to be freed.
  void let_go(std::span<Version* const> versions) noexcept;
  // Says what was seen and lost, up to now.
  TimeReport report();

 private:
  Status begin(AttachedThread& t);
  void drain(AttachedThread& t);
  void say_fallback(const AttachedThread& t);

  const Parts parts_;
  sampler::HostCode host_;
  SampleSignal signal_;  // before the threads go
  StackSamples samples_;
  std::atomic<bool> on_{false};
  bool ever_ = false;       // some thread was sampled
  bool fell_back_ = false;  // which was logged
  SampleEngine engine_ = SampleEngine::kTaskClock;
  sampler::StackRecord record_;         // what is taken out
  sampler::StackSampler::Counts gone_;  // of threads that have gone
};

}  // namespace uptier::tiering
