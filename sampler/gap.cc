#include "sampler/gap.h"

#include <cmath>

namespace uptier::sampler {
namespace {

bool is_prime(uint32_t n) {
  if (n < 4) return n > 1;
  if (n % 2 == 0) return false;
  for (uint32_t d = 3; uint64_t{d} * d <= n; d += 2) {
    if (n % d == 0) return false;
  }
  return true;
}

}  // namespace

uint32_t next_gap(uint32_t mean, double u) noexcept {
  if (mean <= 1) return 1;
  // P(gap > k) = (1 - 1/mean)^k, so gap = 1 + floor(log(1 - u) / log(1 - 1/mean)).
  double k = std::log1p(-u) / std::log1p(-1.0 / mean);
  return k >= 0x7ffffffe ? 0x7fffffffu : 1 + static_cast<uint32_t>(k);
}

uint32_t nearest_prime(uint32_t n) noexcept {
  if (n <= 1) return 1;
  for (uint32_t d = 0;; ++d) {
    if (d < n && is_prime(n - d)) return n - d;
    if (is_prime(n + d)) return n + d;
  }
}

GapLaw GapLaw::make(GapKind kind, uint32_t interval) noexcept {
  double scale = interval > 1 ? 1.0 / std::log1p(-1.0 / interval) : 0.0;
  return {kind, interval, scale, kind == GapKind::kPrime ? nearest_prime(interval) : interval};
}

uint32_t GapLaw::draw(uint64_t& random) const noexcept {
  if (interval == 1) return 1;
  if (kind != GapKind::kRandom) return step;
  // next_gap() with its divisor kept and log for log1p: slow paths run this. u is a multiple of
  // 2^-53, so 1 - u is exact.
  double k = std::log(1.0 - to_unit(next_random(random))) * scale;
  return k >= 0x7ffffffe ? 0x7fffffffu : 1 + static_cast<uint32_t>(k);
}

}  // namespace uptier::sampler
