// sample_signal: the signal of stack samples, from the kernel to the thread's StackSampler.
//
// A thread may be attached to several runtimes, each of which has a sampler for it: the one whose clock has
// sent the signal takes the sample. Only the innermost runtime's can be walked: the stacks of the others are
// under its frames.
//
//   Thread: SampleSignal any, one at a time. UnblockedSamples: made and destroyed by the thread that it is for.
#pragma once

#include <signal.h>

#include "sampler/stack_record.h"
#include "uptier/options.h"
#include "uptier/result.h"

namespace uptier::tiering {

// Returns the signal's number.
int sample_signal(const Options& o) noexcept;

// Has the signal handled, from take() on, while it lives.
class SampleSignal {
 public:
  explicit SampleSignal(int number) : number_(number) {}
  ~SampleSignal();
  SampleSignal(const SampleSignal&) = delete;
  SampleSignal& operator=(const SampleSignal&) = delete;

  // Errors: kInvalidArgument, kIo.
  Status take();
  int number() const { return number_; }

 private:
  const int number_;
  bool taken_ = false;
};

// Lets the signal through on the calling thread; puts the mask back.
class UnblockedSamples {
 public:
  explicit UnblockedSamples(int signal) noexcept;
  ~UnblockedSamples();
  UnblockedSamples(const UnblockedSamples&) = delete;
  UnblockedSamples& operator=(const UnblockedSamples&) = delete;

 private:
  int signal_;
  bool was_blocked_ = false;
};

// The sampler::StackWalk of an AttachedThread.
void walk_sampled_thread(void* thread, void* machine, sampler::StackRecord& out) noexcept;

}  // namespace uptier::tiering
