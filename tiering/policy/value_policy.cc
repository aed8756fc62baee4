#include "tiering/policy/value_policy.h"

#include <bit>
#include <cassert>
#include <cstdio>

#include "tiering/policy/duration_text.h"

namespace uptier::tiering {
namespace {

template <typename... Args>
std::string reason_text(const char* format, Args... args) {
  char buffer[200];
  std::snprintf(buffer, sizeof buffer, format, args...);
  return buffer;
}

unsigned long long number(uint64_t n) { return n; }

}  // namespace

Decision decide_value(const ValueSnapshot& v, const PolicyOptions& o) {
  double share = v.samples == 0 ? 0 : static_cast<double>(v.seen) / static_cast<double>(v.samples);
  assert(v.seen <= v.samples);
  Decision d;
  d.reason = reason_text("parameter %u is %lld in %.1f %% of %llu samples", v.param + 1,
                         static_cast<long long>(v.value), 100 * share, number(v.samples));
  if (v.samples < o.value_samples || share < o.value_share) return d;
  if (v.retries >= o.exit_retries) {
    d.action = Action::kBan;
    d.reason += reason_text("; taken back %u times", v.retries);
    return d;
  }
  double speedup = v.speedup > 0 ? v.speedup : o.speedup;
  double saved = v.past_ns * (1 - 1 / speedup);
  bool always = o.mode == PolicyMode::kAlways;
  d.reason += reason_text("; %s so far, compile %s", duration_text(v.past_ns).c_str(),
                          duration_text(v.cost_ns).c_str());
  if (!always && saved <= 2 * v.cost_ns) return d;
  if (always) d.reason = "policy always; " + d.reason;
  d.action = Action::kSpecialize;
  d.priority = saved - 2 * v.cost_ns;
  return d;
}

Decision decide_guard(const GuardSnapshot& g, const PolicyOptions& o) {
  Decision d;
  d.reason =
      reason_text("%llu of %llu calls had another value, %.3g %% may, taken back %u times before",
                  number(g.misses), number(g.window), 100 * o.miss_share, g.retries);
  assert(g.misses <= g.window);
  bool often = static_cast<double>(g.misses) > o.miss_share * static_cast<double>(g.window);
  if (!often) return d;
  d.action = g.retries >= o.exit_retries ? Action::kBan : Action::kRollBack;
  return d;
}

SiteDecision decide_site(const SiteSnapshot& s, const PolicyOptions& o) {
  double share = s.samples == 0 ? 0 : static_cast<double>(s.seen) / static_cast<double>(s.samples);
  assert(s.seen <= s.samples && s.min <= s.max);
  SiteDecision d;
  d.reason = reason_text("site %u is %lld in %.1f %% of %llu samples, all from %lld to %lld",
                         s.site, static_cast<long long>(s.value), 100 * share, number(s.samples),
                         static_cast<long long>(s.min), static_cast<long long>(s.max));
  if (s.samples < o.value_samples) return d;
  if (share >= o.value_share) {
    d.action = Action::kSpecialize;
    d.min = d.max = s.value;
    return d;
  }
  auto magnitude = [](int64_t x) { return static_cast<uint64_t>(x < 0 ? ~x : x); };
  auto bits = static_cast<uint32_t>(std::bit_width(magnitude(s.min) | magnitude(s.max))) + 1;
  if (bits + kSpareBits > (s.wide ? 64u : 32u)) return d;
  assert(bits < 64);
  d.action = Action::kSpecialize;
  d.max = (int64_t{1} << bits) - 1;
  d.min = s.min < 0 ? -d.max - 1 : 0;
  d.reason += reason_text("; taken to lie from %lld to %lld", static_cast<long long>(d.min),
                          static_cast<long long>(d.max));
  return d;
}

}  // namespace uptier::tiering
