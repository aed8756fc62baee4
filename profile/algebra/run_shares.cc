#include "profile/algebra/run_shares.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "profile/algebra/algebra.h"

namespace uptier::profile {
namespace {

constexpr double kZ = 1.96;  // as in estimate_of
constexpr double kExact = std::numeric_limits<double>::infinity();
constexpr double kUnknownSeconds = 1;

// Executions with their variance.
struct Noisy {
  double total = 0;
  double variance = 0;
  double seen = 0;  // executions that were counted one by one

  Noisy& operator+=(const Noisy& n) {
    total += n.total;
    variance += n.variance;
    seen += n.seen;
    return *this;
  }
};

double square(double x) { return x * x; }

SlotKind counted_kind(const MethodProfile& m) {
  long double blocks = 0;
  for (const Slot& s : m.schema.slots) {
    if (s.kind == SlotKind::kBlock && s.word < m.estimates.size()) blocks += m.estimates[s.word];
  }
  return blocks > 0 ? SlotKind::kBlock : SlotKind::kEdge;
}

// The executions of a method's blocks, or of its edges.
struct Sums {
  double estimates = 0;
  double counts = 0;
  double busiest = 0;  // the greatest estimate
};

Sums sums_of(const MethodProfile& m, SlotKind kind) {
  Sums sums;
  for (const Slot& s : m.schema.slots) {
    if (s.kind != kind || s.word >= m.estimates.size() || s.word >= m.counts.size()) continue;
    const auto estimate = static_cast<double>(m.estimates[s.word]);
    sums.estimates += estimate;
    sums.counts += static_cast<double>(m.counts[s.word]);
    sums.busiest = std::max(sums.busiest, estimate);
  }
  return sums;
}

// Returns n. The weights of samples add up to the calls and iterations of baseline code, or to what copies of
// optimized code stand for, whichever is more.
double independent_samples(const MethodProfile& m, const Sums& sums) {
  const double samples = static_cast<double>(m.sampled_calls) + static_cast<double>(m.bursts);
  if (m.weight_squares == 0 || samples == 0) return samples;
  const double baseline = static_cast<double>(m.calls) + static_cast<double>(m.iterations);
  const double copies = sums.counts > 0 ? samples * sums.estimates / sums.counts : 0;
  const double n = square(std::max(baseline, copies)) / static_cast<double>(m.weight_squares);
  return std::clamp(n, 1.0, samples);
}

Noisy own_executions(const MethodProfile& m) {
  const SlotKind kind = counted_kind(m);
  const Sums sums = sums_of(m, kind);
  Noisy result{sums.estimates, 0, sums.counts};
  if (sums.estimates <= sums.counts) return result;
  const double n = independent_samples(m, sums);
  if (n == 0) {
    result.variance = square(sums.estimates / kZ);
    return result;
  }
  double proportions = 0;
  for (const Slot& s : m.schema.slots) {
    if (s.kind != kind || s.word >= m.estimates.size()) continue;
    const double f = static_cast<double>(m.estimates[s.word]) / sums.busiest;
    proportions += f * (1 - f);
  }
  const double unseen = 1 - sums.counts / sums.estimates;
  result.variance = proportions * square(sums.busiest) * unseen / n;
  return result;
}

Noisy body_executions(const InlinedBody& body) {
  Noisy sum;
  double deviation = 0;
  for (const auto& [site, block] : body.blocks) {
    const Estimate e = estimate_of(block.count, block.estimate, block.samples);
    sum.total += e.total;
    sum.seen += static_cast<double>(block.count);
    deviation += (e.high - e.total) / kZ;
  }
  sum.variance = square(deviation);
  return sum;
}

bool is_code_of(const InlinedBody& body, const MethodProfile* m) {
  return m == nullptr || body.code.empty() || body.code.back() == 0 || m->schema.cfg_hash == 0 ||
         body.code.back() == m->schema.cfg_hash;
}

// Returns how many draws make a share with this variance.
double draws(double share, double variance) {
  if (variance <= 0) return kExact;
  return std::max(1.0, share * (1 - share) / variance);
}

ShareRun aligned(const RunShares& r, const std::set<PathFrame>& frames) {
  ShareRun run{r.whole, r.assumed, {}};
  for (const PathFrame& f : frames) {
    const auto at = r.shares.find(f);
    run.shares.push_back(at == r.shares.end() ? ShareSample{0, r.observations} : at->second);
  }
  return run;
}

}  // namespace

RunShares count_shares(const Profile& p, double runs, double seconds) {
  std::map<MethodKey, Noisy> methods;
  for (const auto& [key, m] : p.methods) methods[key] = own_executions(m);
  for (const auto& [key, body] : p.inlined) {
    const MethodKey callee = key.path.back().callee;
    if (is_code_of(body, p.find(callee))) methods[callee] += body_executions(body);
  }
  Noisy all;
  for (const auto& [key, m] : methods) all += m;
  RunShares run;
  run.whole = all.total;
  run.observations = kExact;
  if (all.total <= 0) return run;
  const double each = (seconds > 0 ? seconds : kUnknownSeconds) / std::max(1.0, runs);
  run.assumed = kCountsBetween * (1 + kStartSeconds / each) *
                std::max(0.0, 1 - all.seen / all.total) / std::max(1.0, runs);
  for (const auto& [key, m] : methods) {
    const double share = m.total / all.total;
    const double variance =
        (square(1 - share) * m.variance + square(share) * (all.variance - m.variance)) /
        square(all.total);
    run.shares[{TimePlace::kMethod, key}] = {share, draws(share, variance)};
  }
  return run;
}

RunShares time_shares(const TimeProfile& t, double runs) {
  RunShares run;
  run.whole = static_cast<double>(t.sampled_ns);
  if (t.sampled_ns == 0) return run;
  run.assumed = kTimeBetween / std::max(1.0, runs);
  const double micros = run.whole / 1000;
  run.observations =
      t.squares == 0 ? 1 : std::max(1.0, square(micros) / static_cast<double>(t.squares));
  for (const auto& [frame, time] : t.by_frame()) {
    run.shares[frame] = {static_cast<double>(time.own_ns) / run.whole, run.observations};
  }
  return run;
}

RunChanges run_changes(const std::vector<RunShares>& before, const std::vector<RunShares>& after,
                       double error) {
  std::set<PathFrame> frames;
  for (const auto* side : {&before, &after}) {
    for (const RunShares& r : *side) {
      for (const auto& [frame, share] : r.shares) frames.insert(frame);
    }
  }
  std::vector<ShareRun> first, second;
  for (const RunShares& r : before) {
    if (r.whole > 0) first.push_back(aligned(r, frames));
  }
  for (const RunShares& r : after) {
    if (r.whole > 0) second.push_back(aligned(r, frames));
  }
  RunChanges result;
  if (first.empty() || second.empty()) return result;
  const ShareChanges changes = share_changes(first, second, error);
  result.tested = changes.tested;
  auto item = changes.items.begin();
  for (const PathFrame& f : frames) {
    const ShareChange& c = *item++;
    if (c.before > 0 || c.after > 0) result.items.push_back({f, c});
  }
  return result;
}

}  // namespace uptier::profile
