// Convergence: whether a method's profile is known well enough, and whether it still holds.
//
// A profile is the shares p of a method's sites; two are as far apart as d = 1 - overlap =
// sum |p_i - q_i| / 2. Samples are sampled calls and bursts. Of n of them (effective ones, see
// estimate.h), the estimated shares lie at a distance d from the true ones for which
//
//     E d = rho / sqrt(n)     and for two profiles     E d = rho * sqrt(1/n + 1/m)            (1)
//
// rho is measured: the mean of d / sqrt(1/n + 1/m) over windows, each against all before it, the
// last 16 or so, times 1 + 0.756 / sqrt(windows), one standard deviation of that mean in the worst
// case below. Before there are kLeastWindows it is at least what it would be if samples were single
// draws,
//
//     rho0 = sum sqrt(p_i (1 - p_i) / (2 pi)).
//
// Real samples are whole paths and bursts whose iterations resemble each other; they have another
// rho, from 0 (every call is the same) to several rho0, and nothing but (1) is assumed of it.
//
// How far d may lie above its mean: with odds of alpha at most, L = ln(1 / alpha),
//
//     d < (rho + u) * sqrt(1/n + 1/m) + L * (1/n + 1/m)
//     u = min(rho * sqrt(pi L), sqrt(L / 2) * max(1, rho / rho0))                              (2)
//
// The first u is Borell and TIS's inequality for the L1 norm of a Gaussian vector, whose greatest
// standard deviation in one direction is at most sqrt(pi / 2) of its mean; the second is
// McDiarmid's for single draws, scaled. The last term is for sites that were never seen: n samples
// without one leave a share of up to L / n.
//
//   converged   (2) for n samples against the truth (1/m = 0) at `alpha` is below `epsilon`
//   drifted     a window lies farther from the baseline than (2) at `drift_alpha`, and farther than
//               `epsilon`, which makes it matter. tests/sampler/convergence_test.cc measures the false
//               ones.
//
// While it learns, windows hold an eighth of what is known (64 at least), and drift begins it anew.
// Once converged, the baseline is fixed, and windows hold `probe_samples`.
//
//   Thread: its owner's. Memory: two doubles a site.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampler/estimate.h"

namespace uptier::sampler {

struct ConvergenceOptions {
  double epsilon = 0.02;          // distance to the truth that will do
  double alpha = 0.05;            // odds that the truth is farther away
  double drift_alpha = 1e-3;      // odds that a window is called drift for nothing
  uint32_t probe_samples = 1024;  // in a window, once converged
};

enum class Verdict : uint8_t { kMore, kConverged, kDrifted };

// Returns rho0 of counts.
double multinomial_noise(std::span<const double> counts);
// Returns the samples after which (2) is below epsilon, for a rho.
double samples_needed(double rho, double rho0, const ConvergenceOptions& options);

class Convergence {
 public:
  static constexpr uint32_t kLeastWindows = 4;
  static constexpr double kLeastWindowSamples = 64;

  explicit Convergence(const ConvergenceOptions& options = {}) : options_(options) {}

  // Adds what a flush brought. Returns kMore while a window fills or too little is known,
  // kConverged while the profile is known, kDrifted once at the window that says so; it is learnt
  // anew from that window on.
  Verdict add(const Window& window);

  // Changes ConvergenceOptions::epsilon, and with it what counts as known: a wider one may be met
  // already, which the next add() says; after a narrower one windows are learnt from again until it
  // is met. Nothing that was learnt is lost.
  void set_epsilon(double epsilon);

  bool converged() const { return converged_; }
  // Effective samples in the baseline.
  double samples() const { return history_.samples(); }
  // What (2) says of the distance between the baseline and the truth, at `alpha` or other odds.
  double error_bound() const { return error_bound(options_.alpha); }
  double error_bound(double alpha) const;
  // Effective samples that the baseline needs for `epsilon`, by what is known now.
  double needed() const;
  // rho as used now, inflation included.
  double noise() const;
  // rho of single draws: what there is to be seen of a method of which all was alike so far.
  double variety() const { return rho0_; }
  // Of the last whole window: its distance from the baseline, and what (2) allowed.
  double last_distance() const { return last_distance_; }
  double last_allowed() const { return last_allowed_; }
  uint32_t windows() const { return windows_; }
  // Whole windows that were compared, ever.
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
  uint32_t windows_ = 0;  // learnt from, since the last drift
  uint32_t compared_ = 0;
  uint32_t drifts_ = 0;
  bool converged_ = false;
};

}  // namespace uptier::sampler
