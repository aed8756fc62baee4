#include "profile/algebra/quantile.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace uptier::profile {
namespace {

constexpr uint32_t kManyDegrees = 1000;  // with more, t and z differ by less than 0.01

double normal_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

// Returns the probability that |t| is at most `t`.
double student_within(double t, uint32_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  const uint32_t first = degrees % 2 == 0 ? 0 : 1;
  double term = first == 0 ? 1 : cosine;
  double sum = degrees == 1 ? 0 : term;
  for (uint32_t power = first + 2; power + 2 <= degrees; power += 2) {
    term *= cosine * cosine * (power - 1) / power;
    sum += term;
  }
  const double whole = std::sin(angle) * sum;
  return first == 0 ? whole : 2 / std::numbers::pi * (angle + whole);
}

// Returns the point in [0, high] where a falling function has the value `wanted`.
template <typename Tail>
double point_of(double wanted, double high, Tail tail) {
  double low = 0;
  while (high - low > 1e-10 * std::max(1.0, low)) {
    const double middle = (low + high) / 2;
    (tail(middle) > wanted ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double normal_point(double beyond) {
  return point_of(std::clamp(beyond, 1e-300, 0.5), 40, normal_tail);
}

double student_point(double beyond, uint32_t degrees) {
  if (degrees > kManyDegrees) return normal_point(beyond);
  const uint32_t whole = std::max(degrees, 1u);
  return point_of(std::clamp(beyond, 1e-12, 0.5), 1e12,
                  [&](double t) { return (1 - student_within(t, whole)) / 2; });
}

}  // namespace uptier::profile
