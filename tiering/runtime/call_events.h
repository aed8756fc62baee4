// CallEvents: what is due of the sampling schedule at a call: a sample, a flush, another rate.
//
//   Thread: the guest's own, below guest frames. The law is in guest.h.
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

  // Handles the event that is due at a call, its flush included.
  sampler::CallEvent next(Method& m, AttachedThread& t) noexcept;

 private:
  Engine& engine_;
  Notes& notes_;
  OptimizedSamples& optimized_samples_;
};

}  // namespace uptier::tiering
