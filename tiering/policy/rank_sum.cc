#include "tiering/policy/rank_sum.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace uptier::tiering {
namespace {

uint64_t median(std::span<const uint64_t> values) {
  if (values.empty()) return 0;
  std::vector<uint64_t> v(values.begin(), values.end());
  auto middle = v.begin() + static_cast<ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

}  // namespace

RankSum rank_sum(std::span<const uint64_t> a, std::span<const uint64_t> b) {
  RankSum r{0, median(a), median(b)};
  if (a.empty() || b.empty()) return r;
  std::vector<std::pair<uint64_t, bool>> all;
  for (uint64_t v : a) all.push_back({v, true});
  for (uint64_t v : b) all.push_back({v, false});
  std::sort(all.begin(), all.end());
  double ranks = 0, ties = 0;  // sum of the ranks of a; sum of t^3 - t
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && all[end].first == all[i].first) ++end;
    // Ties share the mean of ranks i + 1 .. end.
    double rank = static_cast<double>(i + 1 + end) / 2;
    auto size = static_cast<double>(end - i);
    assert(end > i);
    ties += size * size * size - size;
    for (; i < end; ++i) ranks += all[i].second ? rank : 0;
  }
  auto na = static_cast<double>(a.size()), nb = static_cast<double>(b.size());
  double n = na + nb;
  assert(ranks <= n * (n + 1) / 2);
  double u = ranks - na * (na + 1) / 2;
  double variance = na * nb / 12 * (n + 1 - (n > 1 ? ties / (n * (n - 1)) : 0));
  assert(u >= 0 && u <= na * nb);  // number of pairs
  r.z = variance > 0 ? (u - na * nb / 2) / std::sqrt(variance) : 0;
  return r;
}

}  // namespace uptier::tiering
