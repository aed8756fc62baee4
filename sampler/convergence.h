// Convergence: whether a method's profile is known well enough, and whether it still holds.
//
// A profile is the shares p of a method's sites. The distance of two profiles is d = 1 - overlap =
// sum |p_i - q_i| / 2. Samples are sampled calls and bursts. With n (effective) samples, see
// estimate.h, the distance d between the estimated and the true shares has the mean
//
//     E d = rho / sqrt(n)     and for two profiles     E d = rho * sqrt(1/n + 1/m)            (1)
//
// rho is measured: it is the mean of d / sqrt(1/n + 1/m) over the last 16 or so windows, each
// compared with everything before it, times 1 + 0.756 / sqrt(windows), which is one standard
// deviation of that mean in the worst case below. Until there are kLeastWindows, it is at least the
// value for samples that are single draws,
//
//     rho0 = sum sqrt(p_i (1 - p_i) / (2 pi)).
//
// Real samples are whole paths, and bursts whose iterations resemble each other. Their rho is
// different: from 0 (every call is the same) to several rho0. Only (1) is assumed about it.
//
// Bound of d above its mean: with odds of at most alpha, L = ln(1 / alpha),
//
//     d < (rho + u) * sqrt(1/n + 1/m) + L * (1/n + 1/m)
//     u = min(rho * sqrt(pi L), sqrt(L / 2) * max(1, rho / rho0))                              (2)
//
// The first u is the Borell-TIS inequality for the L1 norm of a Gaussian vector, whose greatest
// standard deviation in one direction is at most sqrt(pi / 2) of its mean; the second is
// McDiarmid's for single draws, scaled. The last term covers sites that were never seen: n samples
// without a site leave it a share of up to L / n.
//
//   converged   (2) for n samples against the truth (1/m = 0) at `alpha` is below `epsilon`
//   drifted     a window lies farther from the baseline than (2) at `drift_alpha`, and farther than
//               `epsilon`, so that it matters. tests/sampler/convergence_test.cc measures the false
//               ones.
//
// While a profile is being learnt, a window holds an eighth of the samples so far (at least 64),
// and drift restarts the learning. Once the profile has converged, the baseline is fixed, and
// windows hold `probe_samples`.
//
//   Thread: its owner. Memory: two doubles per site.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampler/estimate.h"

namespace uptier::sampler {

struct ConvergenceOptions {
  double epsilon = 0.02;          // acceptable distance to the truth
  double alpha = 0.05;            // odds that the distance is larger
  double drift_alpha = 1e-3;      // odds of a false drift, per window
  uint32_t probe_samples = 1024;  // in a window, once converged
};

enum class Verdict : uint8_t { kMore, kConverged, kDrifted };

// Returns rho0 of counts.
double multinomial_noise(std::span<const double> counts);
// Returns the number of samples after which (2) is below epsilon, for a given rho.
double samples_needed(double rho, double rho0, const ConvergenceOptions& options);

class Convergence {
 public:
  static constexpr uint32_t kLeastWindows = 4;
  static constexpr double kLeastWindowSamples = 64;

  explicit Convergence(const ConvergenceOptions& options = {}) : options_(options) {}

  // Adds the counts of a flush. Returns kMore while a window fills or too little is known,
  // kConverged while the profile is known, and kDrifted once, at the window that shows the drift;
  // learning restarts from that window.
  Verdict add(const Window& window);

  // Changes ConvergenceOptions::epsilon. If the profile already meets a wider one, the next add()
  // says so. After a narrower one, windows are learnt from again until it is met. No samples are
  // lost.
  void set_epsilon(double epsilon);

  bool converged() const { return converged_; }
  // Effective samples in the baseline.
  double samples() const { return history_.samples(); }
  // The bound (2) of the distance between the baseline and the truth, at `alpha` or at other odds.
  double error_bound() const { return error_bound(options_.alpha); }
  double error_bound(double alpha) const;
  // Effective samples that the baseline needs for `epsilon`, with the current rho.
  double needed() const;
  // rho as used now, inflation included.
  double noise() const;
  // rho of single draws: what could vary in a method whose samples were all alike so far.
  double variety() const { return rho0_; }
  // The last whole window: its distance from the baseline, and the bound (2) on that.
  double last_distance() const { return last_distance_; }
  double last_allowed() const { return last_allowed_; }
  uint32_t windows() const { return windows_; }
  // Whole windows that were compared, in total.
  uint32_t compared() const { return compared_; }
  uint32_t drifts() const { return drifts_; }

 private:
  struct Sum {
    std::vector<double> counts;  // weighted
    double total = 0;
    double weights = 0;  // sum of weight * samples
    double squares = 0;  // sum of weight^2 * samples

    double samples() const { return squares == 0 ? 0 : weights * weights / squares; }
    void add(const Window& w);
    void add(const Sum& s);
    void clear();
  };

  double distance() const;
  double bound(double alpha, double inverse_samples) const;
  bool known() const;
  Verdict end_window();
  void learn(double normalized);
  void restart();

  ConvergenceOptions options_;
  Sum history_;  // the baseline
  Sum window_;
  double rho_ = 0;   // measured
  double rho0_ = 0;  // of the baseline
  double last_distance_ = 0;
  double last_allowed_ = 0;
  uint32_t windows_ = 0;  // used for learning, since the last drift
  uint32_t compared_ = 0;
  uint32_t drifts_ = 0;
  bool converged_ = false;
};

}  // namespace uptier::sampler
