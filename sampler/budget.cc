#include "sampler/budget.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace uptier::sampler {
namespace {

constexpr double kShortestHorizon = 50e6, kLongestHorizon = 2e9;  // ns
constexpr double kMostSaved = 500e6;                              // ns of time
constexpr double kFirstTick = 10e6;                               // ns of time
constexpr double kDefaultNoise = 1.0;
constexpr double kMostNarrowed = 4;     // rungs a tick
constexpr double kRepay = 4;            // a debt is paid back in a quarter of a horizon
constexpr double kLeastSpent = 0.25;    // of the earnings, while an overrun is paid back
constexpr double kTargets = 0.5;        // weight of the target profile; the block profile has 1
constexpr double kFewTargets = 10'000;  // with fewer, the target profile weighs less
constexpr uint32_t kWidest = Ladder::kPowers - 1;

}  // namespace

void Budget::tick(uint64_t elapsed_ns, std::span<const MethodLoad> loads, std::span<Rate> rates) {
  assert(loads.size() == rates.size());
  auto elapsed = static_cast<double>(elapsed_ns);
  double horizon = std::clamp(elapsed_ + elapsed, kShortestHorizon, kLongestHorizon);
  double born_ns = 0;
  needs_.clear();
  for (const MethodLoad& load : loads) {
    if (load.method >= known_.size()) known_.resize(load.method + 1);
    Known& k = known_[load.method];
    if (k.sample_ns == 0) born_ns += load.spent_ns;
    observe(k, load, elapsed);
  }
  weigh_masses(loads);
  for (const MethodLoad& load : loads) {
    needs_.push_back(need_of(known_[load.method], load, horizon));
  }
  account(elapsed, loads);
  double earned = options_.budget * options_.margin;
  adapt_start(born_ns, earned * elapsed);

  assert(needs_.size() == loads.size());
  double settle = balance_ < 0 ? balance_ * kRepay : balance_;
  double level = level_for(std::max(kLeastSpent * earned * horizon, earned * horizon + settle));
  double opportunities = 0, samples = 0;
  for (size_t i = 0; i < loads.size(); ++i) {
    double planned = needs_[i].at(level);
    rates[i] = rate_for(loads[i], needs_[i], planned);
    opportunities += needs_[i].opportunities;
    samples += planned;
  }
  multiplier_ = samples > 0 ? opportunities / samples : 1;
  // Twice the plan of a tick, so that an uneven load does not brake, plus savings or minus
  // overruns.
  double plan = earned * std::max(elapsed, 1e6);
  allowance_ = static_cast<uint64_t>(std::max(plan / 4, 2 * plan + balance_) / mean_sample_ns_);
}

void Budget::account(double elapsed, std::span<const MethodLoad> loads) {
  double spent = 0, samples = 0;
  for (const MethodLoad& load : loads) {
    spent += load.spent_ns;
    samples += static_cast<double>(load.samples);
  }
  assert(elapsed >= 0 && spent >= 0);
  elapsed_ += elapsed;
  spent_ += spent;
  if (elapsed > 0) last_share_ = spent / elapsed;
  if (samples >= 16) mean_sample_ns_ += (spent / samples - mean_sample_ns_) / 4;
  mean_sample_ns_ = std::max(mean_sample_ns_, 1.0);
  double earned = options_.budget * options_.margin;
  balance_ = std::min(balance_ + earned * elapsed - spent, earned * kMostSaved);
}

void Budget::observe(Known& k, const MethodLoad& load, double elapsed) const {
  if (elapsed <= 0) return;
  auto samples = static_cast<double>(load.samples);
  if (samples > 0) {
    double cost = load.spent_ns / samples;
    k.sample_ns = k.sample_ns == 0 ? cost : k.sample_ns + (cost - k.sample_ns) / 4;
  }
  // Threads report at their events, so the events of several ticks may arrive at once.
  k.quiet_ns += elapsed;
  if (load.opportunities > 0) {
    double seen = load.opportunities / k.quiet_ns;
    k.rate += (seen - k.rate) * (seen > k.rate ? 1.0 : 0.25);  // lower rates are adopted slowly
    k.quiet_ns = 0;
  } else {
    // Nothing arrived for a while: up to about one interval's worth may have run unseen.
    k.rate = std::min(k.rate, interval_of(load.rate) / k.quiet_ns);
  }
}

double Budget::mass_of(const MethodLoad& load) const {
  if (load.mass <= 0 || load.total <= 0) return mean_mass_;
  return (load.mass + target_weight_ * load.targets) / load.total;
}

void Budget::weigh_masses(std::span<const MethodLoad> loads) {
  double blocks = 0, targets = 0, all = 0, opportunities = 0;
  for (const MethodLoad& load : loads) {
    if (load.total <= 0 || load.mass <= 0) continue;
    double rate = known_[load.method].rate;
    opportunities += rate;
    blocks += rate / load.total * load.mass;
    targets += rate / load.total * load.targets;
    all += load.targets;
  }
  mean_mass_ = opportunities > 0 ? blocks / opportunities : 1;
  target_weight_ = targets > 0 ? kTargets * std::min(1.0, all / kFewTargets) * blocks / targets : 0;
}

Budget::Need Budget::need_of(const Known& k, const MethodLoad& load, double horizon) const {
  Need n{};
  n.cost = k.sample_ns > 0 ? k.sample_ns : mean_sample_ns_;
  n.opportunities = load.wanted ? k.rate * horizon : 0;
  n.most = n.opportunities;
  if (load.enough > 0 && load.total > load.enough) n.most *= load.enough / load.total;
  double mass = k.rate * horizon * mass_of(load);
  double noise = load.noise > 0 ? load.noise : kDefaultNoise;
  assert(n.cost > 0 && mass >= 0 && noise > 0);
  double root = std::cbrt(mass * noise / n.cost);
  n.g = root * root;
  return n;
}

// Returns the level at which the planned samples cost `spend`, or, if all of them can be paid, the
// highest level that makes a difference.
double Budget::level_for(double spend) const {
  auto cost_at = [this](double level) {
    double cost = 0;
    for (const Need& n : needs_) cost += n.at(level) * n.cost;
    return cost;
  };
  double high = 0;
  for (const Need& n : needs_) {
    if (n.g > 0) high = std::max(high, n.most / n.g);
  }
  assert(spend >= 0);
  if (cost_at(high) <= spend) return high;
  double low = 0;
  // Levels differ by orders of magnitude: halve down first, then bisect to 1 %.
  while (high > 1e-12 && cost_at(high / 4) > spend) high /= 4;
  assert(low == 0 && high > 0);
  low = high / 4;
  for (int i = 0; i < 9; ++i) {
    double middle = std::sqrt(low * high);
    (cost_at(middle) > spend ? high : low) = middle;
  }
  return low;
}

Rate Budget::rate_for(const MethodLoad& load, const Need& need, double planned) const {
  uint32_t burst = load.burst != 0 ? load.burst : options_.burst;
  if (!load.wanted) return Rate::off(burst);
  if (!load.rate.samples()) return start_rate(burst);
  // Expect some sample in a horizon or two.
  double all = need.opportunities;
  double widest = std::clamp(std::log2(std::max(1.0, all * 2)), 0.0, double{kWidest});
  double ideal = planned > 0 ? std::log2(std::max(1.0, all / planned)) : widest;
  ideal = std::min(ideal, widest);
  double now = std::log2(interval_of(load.rate));
  if (ideal > now + 0.25) { return Rate::sampled(static_cast<uint32_t>(std::ceil(ideal)), burst); }
  if (load.rate.decays()) {
    bool far_enough = ideal < now - 0.25;
    return far_enough ? Rate::sampled(load.rate.rung(), burst) : load.rate;
  }
  if (ideal <= now - 1.0) {
    double next = std::max(ideal, now - kMostNarrowed);
    return Rate::sampled(static_cast<uint32_t>(std::ceil(next)), burst);
  }
  return load.rate;
}

void Budget::adapt_start(double born_ns, double could_spend) {
  double half = could_spend / 2;
  if (half <= 0) return;
  if (born_ns > half) {
    assert(born_ns / half > 1);
    auto more = static_cast<uint32_t>(std::ceil(std::log2(born_ns / half)));
    start_rung_ = std::min(start_rung_ + more, 16u);
  } else if (born_ns < half / 4 && start_rung_ > 0 && balance_ >= 0) {
    --start_rung_;
  }
}

Rate Budget::start_rate(uint32_t burst) const {
  assert(start_rung_ < Ladder::kPowers);
  return Rate::decaying(start_rung_, std::max(start_rung_, options_.target_rung), burst);
}

uint64_t Budget::first_allowance() const {
  return static_cast<uint64_t>(options_.budget * options_.margin * kFirstTick / mean_sample_ns_);
}

}  // namespace uptier::sampler
