#include "sampler/gap.h"

#include <cassert>
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

// Computes it bit by bit: squaring doubles the logarithm, whose whole part is then the next bit.
constexpr uint64_t log2_of(uint32_t i) {
  if (i == 256) return uint64_t{1} << 56;
  uint64_t x = (uint64_t{1} << 63) + (uint64_t{i} << 55);  // in [1, 2), in units of 2^-63
  uint64_t log2 = 0;
  for (int bit = 55; bit >= 0; --bit) {
    unsigned __int128 square = static_cast<unsigned __int128>(x) * x;  // in units of 2^-126
    bool two = (square >> 127) != 0;
    log2 |= uint64_t{two} << bit;
    x = static_cast<uint64_t>(square >> (two ? 64 : 63));
  }
  return log2;
}

constexpr LogTable make_log_table() {
  LogTable t{};
  for (uint32_t i = 0; i <= 256; ++i) t.value[i] = log2_of(i);
  return t;
}

}  // namespace

constinit const LogTable kLogTable = make_log_table();

uint32_t next_gap(uint32_t mean, double u) noexcept {
  assert(u >= 0 && u < 1);
  if (mean <= 1) return 1;
  // P(gap > k) = (1 - 1/mean)^k, so gap = 1 + floor(log(1 - u) / log(1 - 1/mean)).
  double k = std::log1p(-u) / std::log1p(-1.0 / mean);
  return k >= 0x7ffffffe ? 0x7fffffffu : 1 + static_cast<uint32_t>(k);
}

uint32_t nearest_prime(uint32_t n) noexcept {
  assert(n <= 1u << 31);
  if (n <= 1) return 1;
  for (uint32_t d = 0;; ++d) {
    if (d < n && is_prime(n - d)) return n - d;
    if (is_prime(n + d)) return n + d;
  }
}

GapLaw GapLaw::make(GapKind kind, uint32_t interval) noexcept {
  GapLaw law;
  assert(interval != 0);
  law.kind = kind;
  law.interval = interval;
  law.step = kind == GapKind::kPrime ? nearest_prime(interval) : interval;
  if (interval > 1) {
    double scale = -std::log(2.0) / std::log1p(-1.0 / interval);
    law.scale = static_cast<uint64_t>(std::llround(scale * 0x1p32));
  }
  return law;
}

}  // namespace uptier::sampler
