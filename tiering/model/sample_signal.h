// sample_signal: passes the signal of stack samples from the kernel to the thread's StackSampler.
//
// A thread may be attached to several runtimes, and each has a sampler for it. The sampler whose
// clock sent the signal takes the sample. Only the innermost runtime can be walked: the frames of
// the others are below its frames.
//
//   Thread: SampleSignal: any, one at a time. UnblockedSamples: made and destroyed by the thread it is for.
#pragma once

#include <signal.h>

#include "sampler/stack_record.h"
#include "uptier/options.h"
#include "uptier/result.h"

namespace uptier::tiering {

// Returns the signal's number.
int sample_signal(const Options& o) noexcept;

// Handles the signal from take() until it is destroyed.
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

// Unblocks the signal on the calling thread; the destructor restores the mask.
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
