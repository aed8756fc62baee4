#include "profile/algebra/share_change.h"

#include <algorithm>
#include <cmath>

#include "profile/algebra/quantile.h"

namespace uptier::profile {
namespace {

// Stands for any number of observations; the noise that is left is far below a share's precision.
constexpr double kExactShare = 1e30;
// Shares that are equal up to this are the same number, summed in another order.
constexpr double kRounding = 1e-12;

// The runs of one side, for one item.
struct Side {
  double mean = 0;
  double observations = kExactShare;
  double runs = 0;     // equally weighted ones that would be as good
  double assumed = 0;  // mean of the runs
  double spread = 0;   // weighted mean square of the differences from the mean
};

Side side_of(std::span<const ShareRun> runs, size_t item) {
  double whole = 0;
  for (const ShareRun& r : runs) whole += r.weight;
  Side s;
  double squares = 0, inverse = 0;
  for (const ShareRun& r : runs) {
    const double w = r.weight / whole;
    s.mean += w * r.shares[item].share;
    s.assumed += w * r.assumed;
    squares += w * w;
    inverse += w * w / std::min(r.shares[item].observations, kExactShare);
  }
  for (const ShareRun& r : runs) {
    const double apart = r.shares[item].share - s.mean;
    s.spread += r.weight / whole * apart * apart;
  }
  s.observations = 1 / inverse;
  s.runs = 1 / squares;
  return s;
}

// Returns the spread that the observations alone would cause, for p (1 - p) = 1.
double sampled_spread(std::span<const ShareRun> runs, size_t item) {
  double whole = 0, sum = 0;
  for (const ShareRun& r : runs) whole += r.weight;
  for (const ShareRun& r : runs) {
    const double w = r.weight / whole;
    sum += w * (1 - w) / std::min(r.shares[item].observations, kExactShare);
  }
  return sum;
}

// An item with what its noise is made of.
struct Item {
  Side before, after;
  double binomial = 0;  // p (1 - p)
  double middle = 0;    // the same for the mean of the sides, however many observations they have
  double drawn = 0;     // variance of the change from observations
  double between = 0;   // and from runs that differ
  double excess = 0;    // of the spread over that of the observations alone
  double whole = 0;     // the correction for whole counts
  double most = 0;      // the greatest change, if one side had all observations

  // Returns what the spread of the sides is expected to be if runs differ with a variance of 1.
  double free() const { return (1 - 1 / before.runs) + (1 - 1 / after.runs); }
  bool exact() const { return drawn + between <= kRounding * kRounding; }
};

Item item_of(std::span<const ShareRun> before, std::span<const ShareRun> after, size_t at) {
  Item i;
  i.before = side_of(before, at);
  i.after = side_of(after, at);
  const double n = i.before.observations, m = i.after.observations;
  const double p = std::clamp((n * i.before.mean + m * i.after.mean) / (n + m), 0.0, 1.0);
  i.binomial = p * (1 - p);
  const double half = std::clamp((i.before.mean + i.after.mean) / 2, 0.0, 1.0);
  i.middle = half * (1 - half);
  i.drawn = i.binomial * (1 / n + 1 / m);
  const double draws = sampled_spread(before, at) + sampled_spread(after, at);
  i.excess = i.before.spread + i.after.spread - i.binomial * draws;
  i.whole = (1 / n + 1 / m) / 2;
  i.most = std::min(1.0, p * (n + m) / std::min(n, m));
  return i;
}

// Returns the excess of all items together, as a multiple of p (1 - p).
double common_excess(const std::vector<Item>& items) {
  double excess = 0, middle = 0;
  for (const Item& i : items) {
    excess += i.excess;
    middle += i.middle * i.free();
  }
  return middle > 0 ? std::max(0.0, excess / middle) : 0;
}

// Sets the variance from runs that differ.
void set_between(std::vector<Item>& items, uint32_t degrees) {
  const double common = degrees == 0 ? 0 : common_excess(items);
  for (Item& i : items) {
    const double assumed = (i.before.assumed + i.after.assumed) / 2;
    const double prior = i.middle * std::max(common, assumed);
    const double seen = i.free() > 0 ? std::max(0.0, i.excess / i.free()) : 0;
    const double variance =
        (kPriorDegrees * prior + degrees * seen) / static_cast<double>(kPriorDegrees + degrees);
    i.between = variance * (1 / i.before.runs + 1 / i.after.runs);
  }
}

class Noise {
 public:
  Noise(double error, size_t tests, uint32_t degrees) {
    const double tail = error / (2 * static_cast<double>(tests));
    normal_ = normal_point(tail);
    student_ = degrees == 0 ? normal_ : student_point(tail, kPriorDegrees + degrees);
  }

  double of(const Item& i) const {
    if (i.exact()) return kRounding;
    const double variance = i.drawn + i.between;
    const double point = (i.drawn * normal_ + i.between * student_) / variance;
    return point * std::sqrt(variance) + i.whole;
  }
  // Returns how many items could lie beyond it.
  size_t open(const std::vector<Item>& items) const {
    return static_cast<size_t>(
        std::ranges::count_if(items, [&](const Item& i) { return !i.exact() && i.most > of(i); }));
  }

 private:
  double normal_ = 0, student_ = 0;
};

// Returns the noise for the least number of tests that is no less than the number of items that could
// lie beyond it.
Noise noise_of(const std::vector<Item>& items, double error, uint32_t degrees) {
  size_t low = 1, high = std::max<size_t>(items.size(), 1);
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (Noise(error, middle, degrees).open(items) <= middle) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return Noise(error, low, degrees);
}

}  // namespace

ShareChanges share_changes(std::span<const ShareRun> before, std::span<const ShareRun> after,
                           double error) {
  const auto degrees = static_cast<uint32_t>(before.size() + after.size() - 2);
  std::vector<Item> items;
  for (size_t at = 0; at < before.front().shares.size(); ++at) {
    items.push_back(item_of(before, after, at));
  }
  set_between(items, degrees);
  const Noise noise = noise_of(items, error, degrees);
  ShareChanges result;
  result.tested = noise.open(items);
  for (const Item& i : items) {
    ShareChange c{i.before.mean, i.after.mean, noise.of(i), std::sqrt(i.drawn + i.between), false};
    c.beyond = std::abs(c.moved()) > c.noise;
    result.items.push_back(c);
  }
  return result;
}

}  // namespace uptier::profile
