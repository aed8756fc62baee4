// CallEvents: the actions of the sampling schedule that are due at a call: a sample, a flush, a new
// rate.
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
#pragma once

#include "sampler/schedule.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;
struct Method;
class Notes;
class OptimizedSamples;

class CallEvents {
 public:
  // All outlive this.
  CallEvents(Engine& engine, Notes& notes, OptimizedSamples& optimized_samples)
      : engine_(engine), notes_(notes), optimized_samples_(optimized_samples) {}

  // Handles the event that is due at a call, including its flush.
  sampler::CallEvent next(Method& m, AttachedThread& t) noexcept;

 private:
  Engine& engine_;
  Notes& notes_;
  OptimizedSamples& optimized_samples_;
};

}  // namespace uptier::tiering
