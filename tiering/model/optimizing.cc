#include "tiering/model/optimizing.h"

#include <cassert>

namespace uptier::tiering {

namespace {

// Samples are rare, so the windows of a known profile hold fewer than those of baseline code.
constexpr sampler::ConvergenceOptions kOptions{.probe_samples = 256};

}  // namespace

void CopyWindows::forget(double epsilon) {
  assert(epsilon >= 0);
  convergence = sampler::Convergence(kOptions);
  convergence.set_epsilon(epsilon);
  known.clear();
  recent.clear();
  misled = told = false;
  samples = 0;
  drift = 0;
}

double CopyWindows::error() const { return convergence.error_bound(kOptions.drift_alpha); }

}  // namespace uptier::tiering
