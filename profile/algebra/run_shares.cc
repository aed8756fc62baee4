#include "profile/algebra/run_shares.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "profile/algebra/algebra.h"
#include "profile/data/estimate.h"

namespace uptier::profile {
namespace {

constexpr double kZ = 1.96;  // as in estimate_of
constexpr double kExact = std::numeric_limits<double>::infinity();

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

// Returns 1 / n: the variance of a proportion of the block's executions, for f (1 - f) = 1.
double inverse_of_samples(const MethodProfile& m, uint64_t count, uint64_t estimate) {
  if (count == 0 || estimate <= count) return 0;
  const Estimate e = estimate_in(m, count, estimate);
  const double unseen = 1 - static_cast<double>(count) / static_cast<double>(estimate);
  return square((e.high - e.total) / (kZ * e.total)) / unseen;
}

SlotKind counted_kind(const MethodProfile& m) {
  long double blocks = 0;
  for (const Slot& s : m.schema.slots) {
    if (s.kind == SlotKind::kBlock && s.word < m.estimates.size()) blocks += m.estimates[s.word];
  }
  return blocks > 0 ? SlotKind::kBlock : SlotKind::kEdge;
}

Noisy own_executions(const MethodProfile& m) {
  const SlotKind kind = counted_kind(m);
  Noisy sum;
  double guessed = 0;
  uint64_t busiest = 0, count = 0;
  for (const Slot& s : m.schema.slots) {
    if (s.kind != kind || s.word >= m.estimates.size() || s.word >= m.counts.size()) continue;
    sum.total += static_cast<double>(m.estimates[s.word]);
    sum.seen += static_cast<double>(m.counts[s.word]);
    if (m.counts[s.word] == 0) guessed += static_cast<double>(m.estimates[s.word]);
    if (m.counts[s.word] == 0 || m.estimates[s.word] <= busiest) continue;
    busiest = m.estimates[s.word];
    count = m.counts[s.word];
  }
  const double inverse = inverse_of_samples(m, count, busiest);
  for (const Slot& s : m.schema.slots) {
    if (s.kind != kind || s.word >= m.estimates.size() || s.word >= m.counts.size()) continue;
    if (m.counts[s.word] == 0) continue;
    const double f = static_cast<double>(m.estimates[s.word]) / static_cast<double>(busiest);
    sum.variance += f * (1 - f) * square(static_cast<double>(busiest)) * inverse;
  }
  sum.variance += square(guessed / kZ);
  return sum;
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

RunShares count_shares(const Profile& p) {
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
  run.assumed = kCountsBetween * std::max(0.0, 1 - all.seen / all.total);
  for (const auto& [key, m] : methods) {
    const double share = m.total / all.total;
    const double variance =
        (square(1 - share) * m.variance + square(share) * (all.variance - m.variance)) /
        square(all.total);
    run.shares[{TimePlace::kMethod, key}] = {share, draws(share, variance)};
  }
  return run;
}

RunShares time_shares(const TimeProfile& t) {
  RunShares run;
  run.whole = static_cast<double>(t.sampled_ns);
  if (t.sampled_ns == 0) return run;
  run.assumed = kTimeBetween;
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
  for (const PathFrame& f : frames) result.items.push_back({f, *item++});
  return result;
}

}  // namespace uptier::profile
