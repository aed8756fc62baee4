#include "sampler/estimate.h"

namespace uptier::sampler {
namespace {

uint64_t add_saturating(uint64_t a, uint64_t b, uint64_t times) {
  uint64_t product, sum;
  if (__builtin_mul_overflow(b, times, &product)) return UINT64_MAX;
  return __builtin_add_overflow(a, product, &sum) ? UINT64_MAX : sum;
}

}  // namespace

Window Estimate::take(uint32_t weight, uint64_t samples, std::span<const uint64_t> counts) {
  Window w;
  w.weight = weight;
  w.samples = samples - (samples < last_samples_ ? 0 : last_samples_);
  w.counts.resize(counts.size());
  if (last_.size() < counts.size()) {
    last_.resize(counts.size());
    values_.resize(counts.size());
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    w.counts[i] = counts[i] - (counts[i] < last_[i] ? 0 : last_[i]);
    values_[i] = add_saturating(values_[i], w.counts[i], weight);
    last_[i] = counts[i];
  }
  last_samples_ = samples;
  auto n = static_cast<double>(w.samples);
  sum_ += weight * n;
  squares_ += static_cast<double>(weight) * weight * n;
  return w;
}

}  // namespace uptier::sampler
