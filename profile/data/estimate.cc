#include <algorithm>
#include <cmath>

#include "profile/base/numbers.h"
#include "profile/data/estimate.h"
#include "profile/data/schema.h"

namespace uptier {
namespace {

// The two-sided 95 % point of the normal distribution.
constexpr double kZ = 1.96;
// The probability that an execution within the interval is never seen.
constexpr double kMiss = 0.05;
// The assumed correlation among the executions in one sample; see profile/data/estimate.h.
constexpr double kWithin = 0.75;

struct Seen {
  double count = 0;
  double estimate = 0;
};

// Returns the numbers that count() estimates from; nothing for a gauge or a site without a slot.
std::optional<Seen> seen_at(const MethodProfile& method, const Slot& slot) {
  const bool here = slot.word < method.counts.size() && slot.word < method.estimates.size();
  if (!here || slot.kind == SlotKind::kGauge) return std::nullopt;
  Seen seen{static_cast<double>(method.counts[slot.word]),
            static_cast<double>(method.estimates[slot.word])};
  if (slot.kind != SlotKind::kCallTarget) return seen;
  const Table* table = method.table(slot.kind, slot.site);
  if (table == nullptr) return seen;
  for (const auto& [key, entry] : *table) {
    seen.count += static_cast<double>(entry.count);
    seen.estimate += static_cast<double>(entry.estimate);
  }
  return seen;
}

double weight_of(const Seen& seen) {
  return seen.count > 0 ? std::max(seen.estimate / seen.count, 1.0) : 1;
}

double mean_weight(const MethodProfile& method) {
  Seen sum;
  for (const Slot& slot : method.schema.slots) {
    const std::optional<Seen> seen = seen_at(method, slot);
    if (!seen) continue;
    sum.count += seen->count;
    sum.estimate += seen->estimate;
  }
  if (sum.count > 0) return weight_of(sum);
  return static_cast<double>(std::max<uint64_t>(method.interval, 1));
}

// The samples of a method, the most executions of a site that each holds, and the number of equally
// weighted samples that would be as good, as a share of the samples.
struct Sampled {
  double samples = 0;
  double most = 1;
  double alike = 1;

  // Returns how many executions of a site seen `count` times are worth one independent execution.
  double together(double count) const {
    const double share = samples > 0 ? std::min(1.0, count / (most * samples)) : 1;
    return 1 + (most - 1) * (share + kWithin * (1 - share));
  }
};

Sampled sampled_of(const MethodProfile& method) {
  Sampled s{static_cast<double>(method.sampled_calls) + static_cast<double>(method.bursts)};
  if (s.samples == 0) return s;
  Seen all;
  for (const Slot& slot : method.schema.slots) {
    const bool counts = slot.kind == SlotKind::kBlock || slot.kind == SlotKind::kEdge;
    const std::optional<Seen> seen = counts ? seen_at(method, slot) : std::nullopt;
    if (!seen) continue;
    s.most = std::max(s.most, seen->count / s.samples);
    all.count += seen->count;
    all.estimate += seen->estimate;
  }
  if (all.count == 0) return s;
  const double weight = weight_of(all);
  const double held = static_cast<double>(method.iterations) / weight;
  if (method.bursts != 0) {
    s.most = std::max(s.most, (held + static_cast<double>(method.sampled_calls)) / s.samples);
  }
  const auto squares = static_cast<double>(method.weight_squares);
  if (squares > 0) s.alike = std::min(1.0, s.samples * weight * weight / squares);
  return s;
}

double relative_variance(const Seen& seen, const Sampled& by) {
  const double apart = seen.count / by.together(seen.count);
  const double effective = std::max(1.0, std::min(apart, by.samples) * by.alike);
  return (1 - 1 / weight_of(seen)) / effective;
}

Estimate around(double total, double relative_variance, double at_least) {
  const double half = total * kZ * std::sqrt(relative_variance);
  return {total, std::min(total, std::max(total - half, at_least)), total + half};
}

// The known facts about a loop's cycles: from its words and their estimates.
struct Timed {
  using Float = long double;

  Timed(const uint64_t* words, const uint64_t* estimates)
      : timed(static_cast<Float>(words[slot_word::kLoopTimed])),
        cycles(static_cast<Float>(words[slot_word::kLoopCycles])),
        squares(wide(words + slot_word::kLoopSquares)),
        stood_for(static_cast<Float>(estimates[slot_word::kLoopTimed])),
        entries(static_cast<Float>(estimates[slot_word::kLoopEntries])),
        all_cycles(static_cast<Float>(estimates[slot_word::kLoopCycles])),
        weighted_squares(wide(estimates + slot_word::kLoopSquares)) {}

  static Float wide(const uint64_t* words) {
    return std::max<Float>(static_cast<Float>(profile::load_wide(words)), 0);
  }

  // Returns the number of equally weighted timed executions whose mean would be as good.
  Float effective() const {
    const bool known = squares > 0 && weighted_squares > 0 && stood_for > 0;
    if (!known) return timed;
    const Float n = stood_for * stood_for * squares / (timed * weighted_squares);
    // Less than one if settle_nest moved the loop further than chance could (loop_nest.h).
    const Float least = stood_for == entries ? 1e-9L : 1;
    return std::clamp<Float>(n, least, timed);
  }

  // The relative spread for one execution.
  double relative_spread(double all) const {
    if (cycles == 0) return 0;
    const double untimed = std::max(0.0, 1 - static_cast<double>(timed) / all);
    const Float mean = cycles / timed;
    const Float spread = timed < 2 ? mean * mean : (squares - cycles * mean) / (timed - 1);
    return static_cast<double>(std::max<Float>(spread, 0) / (mean * mean)) * untimed;
  }
  double mean_variance(double all) const {
    return relative_spread(all) / static_cast<double>(effective());
  }

  // The cycles of all entries. If all of them are stood for, this is an exact sum.
  double total() const {
    if (stood_for == 0) return static_cast<double>(cycles / timed * entries);
    if (stood_for == entries) return static_cast<double>(all_cycles);
    return static_cast<double>(all_cycles / stood_for) * static_cast<double>(entries);
  }

  Float timed, cycles, squares;
  Float stood_for, entries, all_cycles, weighted_squares;
};

}  // namespace

Estimate estimate_of(uint64_t count, uint64_t estimate, uint64_t samples) {
  const Seen seen{static_cast<double>(count), static_cast<double>(estimate)};
  const Sampled by{static_cast<double>(samples)};
  return around(seen.estimate, relative_variance(seen, by), seen.count);
}

Estimate profile::estimate_in(const MethodProfile& method, uint64_t count, uint64_t estimate) {
  const Seen seen{static_cast<double>(count), static_cast<double>(estimate)};
  return around(seen.estimate, relative_variance(seen, sampled_of(method)), seen.count);
}

std::optional<Estimate> profile::estimate_at(const MethodProfile& method, SlotKind kind,
                                             SiteId site) {
  const Slot* slot = method.schema.find(kind, site);
  if (slot == nullptr) return std::nullopt;
  const std::optional<Seen> seen = seen_at(method, *slot);
  if (!seen) return std::nullopt;
  const Sampled by = sampled_of(method);
  if (seen->count > 0) { return around(seen->estimate, relative_variance(*seen, by), seen->count); }
  const double gone_by = static_cast<double>(method.calls) + static_cast<double>(method.iterations);
  if (by.samples == 0 && gone_by > 0) {
    if (seen->estimate <= 0) return std::nullopt;
    return Estimate{seen->estimate, 0, 2 * seen->estimate};  // from tallies alone
  }
  const double weight = std::max(mean_weight(method), by.samples > 0 ? gone_by / by.samples : 1);
  const double apart = weight > 1 ? std::log(kMiss) / std::log1p(-1 / weight) : 0;
  const double unseen = apart * by.together(0);
  return Estimate{seen->estimate, 0, std::max(seen->estimate, unseen)};
}

std::optional<Estimate> profile::loop_cycles_at(const MethodProfile& method, SiteId site) {
  const Slot* slot = method.schema.find(SlotKind::kLoop, site);
  const std::span<const uint64_t> loop = method.words(SlotKind::kLoop, site);
  const bool known = loop.size() == slot_words(SlotKind::kLoop) &&
                     slot->word + loop.size() <= method.estimates.size();
  if (!known) return std::nullopt;
  const Seen entries = *seen_at(method, *slot);
  if (entries.count == 0) return Estimate{};
  if (loop[slot_word::kLoopTimed] == 0) return std::nullopt;
  const Timed timed(loop.data(), &method.estimates[slot->word]);
  const double variance = timed.mean_variance(std::max(entries.estimate, 1.0)) +
                          relative_variance(entries, sampled_of(method));
  return around(timed.total(), variance, static_cast<double>(timed.cycles));
}

void profile::set_loop_cycles(MethodProfile& method, const Slot& slot, const Estimate& cycles,
                              const LoopTotals& whole) {
  uint64_t* estimates = &method.estimates[slot.word];
  const Timed timed(&method.counts[slot.word], estimates);
  const Seen entries = *seen_at(method, slot);
  if (timed.timed == 0 || entries.estimate == 0) return;
  const auto stood_for = static_cast<long double>(estimates[slot_word::kLoopEntries]);
  if (timed.stood_for > 0) {
    const auto iterations = static_cast<long double>(estimates[slot_word::kLoopTimedIterations]);
    estimates[slot_word::kLoopTimedIterations] = static_cast<uint64_t>(
        std::min<long double>(iterations * stood_for / timed.stood_for, 0x1p62L));
  }
  estimates[slot_word::kLoopTimed] = estimates[slot_word::kLoopEntries];
  estimates[slot_word::kLoopCycles] = whole.total;
  estimates[slot_word::kLoopExclusiveCycles] = whole.own;
  // The number of timed executions that would give the same interval; squares of weights encode it.
  const double half = std::max(cycles.high - cycles.total, cycles.total - cycles.low);
  const double wanted = cycles.total > 0 ? half / (kZ * cycles.total) : 0;
  const double left = wanted * wanted - relative_variance(entries, sampled_of(method));
  const double spread = timed.relative_spread(std::max(entries.estimate, 1.0));
  long double tell = timed.effective();
  if (left > 0) tell = std::clamp<long double>(spread / left, 1e-9L, tell);
  const long double squares = timed.squares * stood_for * stood_for / (timed.timed * tell);
  store_wide(&estimates[slot_word::kLoopSquares],
             static_cast<Wide>(std::min<long double>(squares, 0x1p126L)));
}

}  // namespace uptier
