#include "sampler/convergence.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

namespace uptier::sampler {
namespace {

constexpr double kPi = std::numbers::pi;

// The allowance u of (2).
double excess(double rho, double rho0, double l) {
  double draws = std::sqrt(l / 2) * (rho0 > 0 ? std::max(1.0, rho / rho0) : 1.0);
  return std::min(rho * std::sqrt(kPi * l), draws);
}

}  // namespace

double multinomial_noise(std::span<const double> counts) {
  double total = 0, sum = 0;
  for (double c : counts) total += c;
  if (total <= 0) return 0;
  assert(std::ranges::all_of(counts, [](double c) { return c >= 0; }));
  for (double c : counts) sum += std::sqrt(c / total * std::max(0.0, 1 - c / total));
  return sum / std::sqrt(2 * kPi);
}

double samples_needed(double rho, double rho0, const ConvergenceOptions& o) {
  // epsilon * x^2 - (rho + u) * x - L = 0 for x = sqrt(n).
  assert(o.alpha > 0 && o.alpha < 1 && o.epsilon > 0);
  double l = std::log(1 / o.alpha), a = rho + excess(rho, rho0, l);
  double x = (a + std::sqrt(a * a + 4 * o.epsilon * l)) / (2 * o.epsilon);
  return x * x;
}

void Convergence::Sum::add(const Window& w) {
  if (counts.size() < w.counts.size()) counts.resize(w.counts.size());
  double weight = w.weight;
  for (size_t i = 0; i < w.counts.size(); ++i) {
    counts[i] += weight * static_cast<double>(w.counts[i]);
    total += weight * static_cast<double>(w.counts[i]);
  }
  weights += weight * static_cast<double>(w.samples);
  assert(total >= 0 && weights > 0);
  squares += weight * weight * static_cast<double>(w.samples);
}

void Convergence::Sum::add(const Sum& s) {
  if (counts.size() < s.counts.size()) counts.resize(s.counts.size());
  for (size_t i = 0; i < s.counts.size(); ++i) counts[i] += s.counts[i];
  total += s.total;
  weights += s.weights;
  squares += s.squares;
}

void Convergence::Sum::clear() {
  std::fill(counts.begin(), counts.end(), 0.0);
  total = weights = squares = 0;
}

double Convergence::noise() const {
  if (windows_ == 0) return rho0_;
  double inflated = rho_ * (1 + 0.756 / std::sqrt(std::min(windows_, 16u)));
  return windows_ < kLeastWindows ? std::max(inflated, rho0_) : inflated;
}

double Convergence::bound(double alpha, double inverse_samples) const {
  double rho = noise(), l = std::log(1 / alpha);
  return (rho + excess(rho, rho0_, l)) * std::sqrt(inverse_samples) + l * inverse_samples;
}

double Convergence::error_bound(double alpha) const {
  return samples() > 0 ? std::min(1.0, bound(alpha, 1 / samples())) : 1.0;
}

double Convergence::needed() const { return samples_needed(noise(), rho0_, options_); }

double Convergence::distance() const {
  if (window_.total <= 0 || history_.total <= 0) return 0;
  size_t both = std::min(window_.counts.size(), history_.counts.size());
  double shared = 0;
  for (size_t i = 0; i < both; ++i) {
    shared += std::min(window_.counts[i] / window_.total, history_.counts[i] / history_.total);
  }
  assert(shared < 1 + 1e-6);  // both are distributions
  return std::max(0.0, 1 - shared);
}

Verdict Convergence::add(const Window& w) {
  if (w.samples > 0 && w.weight > 0) window_.add(w);
  double full =
      converged_ ? options_.probe_samples : std::max(kLeastWindowSamples, history_.samples() / 8);
  if (window_.samples() >= full) return end_window();
  return converged_ ? Verdict::kConverged : Verdict::kMore;
}

Verdict Convergence::end_window() {
  if (history_.samples() == 0) {
    history_.add(window_);
    window_.clear();
    rho0_ = multinomial_noise(history_.counts);
    return Verdict::kMore;
  }
  assert(window_.samples() > 0);
  double inverse = 1 / window_.samples() + 1 / history_.samples();
  ++compared_;
  last_distance_ = distance();
  last_allowed_ = std::max(options_.epsilon, bound(options_.drift_alpha, inverse));
  if (windows_ >= kLeastWindows && last_distance_ > last_allowed_) {
    restart();
    return Verdict::kDrifted;
  }
  if (!converged_) learn(last_distance_ / std::sqrt(inverse));
  window_.clear();
  return converged_ ? Verdict::kConverged : Verdict::kMore;
}

bool Convergence::known() const {
  return windows_ >= kLeastWindows && error_bound() < options_.epsilon;
}

void Convergence::set_epsilon(double epsilon) {
  options_.epsilon = epsilon;
  converged_ = known();
}

void Convergence::learn(double normalized) {
  assert(!converged_ && normalized >= 0);
  ++windows_;
  rho_ += (normalized - rho_) / std::min(windows_, 16u);
  history_.add(window_);
  rho0_ = multinomial_noise(history_.counts);
  converged_ = known();
}

void Convergence::restart() {
  assert(windows_ >= kLeastWindows);  // only a known profile can drift
  std::swap(history_, window_);
  window_.clear();
  rho0_ = multinomial_noise(history_.counts);
  rho_ = 0;
  windows_ = 0;
  converged_ = false;
  ++drifts_;
}

}  // namespace uptier::sampler
