#include "profile/algebra/rake.h"

#include <algorithm>
#include <cmath>

#include "profile/base/numbers.h"

namespace uptier::profile {
namespace {

uint64_t times(uint64_t value, double factor) {
  long double product = static_cast<long double>(value) * factor + 0.5L;
  return product >= 0x1p64L ? kMaxCount : static_cast<uint64_t>(product);
}

void stretch_wide(uint64_t* words, double factor) {
  long double product = static_cast<long double>(load_wide(words)) * factor;
  bool fits = product < 0x1p126L && product > -0x1p126L;
  if (fits) store_wide(words, static_cast<Wide>(product));
}

}  // namespace

uint64_t Coverage::weigh(uint64_t samples_now, double opportunities_now) {
  if (samples_now <= samples) return 1;
  double since = opportunities_now - opportunities;
  double weight = std::round(since / static_cast<double>(samples_now - samples));
  auto whole = static_cast<uint64_t>(std::clamp(weight, 1.0, 0x1p62));
  opportunities = opportunities_now;
  end_window(samples_now, whole);
  return whole;
}

void Coverage::end_window(uint64_t samples_now, uint64_t weight) {
  if (samples_now <= samples) return;
  covered += static_cast<double>(samples_now - samples) * static_cast<double>(weight);
  add_saturating(squares, mul_saturating(samples_now - samples, mul_saturating(weight, weight)));
  samples = samples_now;
}

double Coverage::stretch(uint64_t calls, uint64_t iterations, uint64_t burst) const {
  if (burst == 0 || covered == 0) return 1;
  double there_were =
      static_cast<double>(calls) + static_cast<double>(iterations) / static_cast<double>(burst);
  return there_were == 0 ? 1 : there_were / covered;
}

namespace {

void stretch_slot(const Slot& slot, Observed& seen, double factor) {
  std::span<const Word> words = words_of(slot.kind);
  for (uint32_t i = 0; i < words.size(); ++i) {
    uint64_t* word = &seen.estimates[slot.word + i];
    if (words[i].rule == WordRule::kSum || words[i].rule == WordRule::kOther) {
      *word = std::max(times(*word, factor), seen.counts[slot.word + i]);
    } else if (words[i].rule == WordRule::kWide) {
      stretch_wide(word, factor);
    }
  }
  auto table = seen.tables.find({slot.kind, slot.site});
  if (table == seen.tables.end()) return;
  for (auto& [key, entry] : table->second) {
    entry.estimate = std::max(times(entry.estimate, factor), entry.count);
  }
}

double quotient(uint64_t there_were, double estimated, double otherwise) {
  bool known = there_were != 0 && estimated > 0;
  return known ? static_cast<double>(there_were) / estimated : otherwise;
}

}  // namespace

void rake(const Schema& schema, std::span<const Draw> draws, Observed& seen, uint64_t calls,
          uint64_t iterations, double rest) {
  if (seen.estimates.empty()) return;
  double entries = 0, arrivals = 0;
  for (size_t i = 0; i < std::min(draws.size(), schema.slots.size()); ++i) {
    const Slot& slot = schema.slots[i];
    if (slot.kind != SlotKind::kBlock) continue;
    auto estimate = static_cast<double>(seen.estimates[slot.word]);
    if (slot.site == 1 && draws[i] == Draw::kCall) entries = estimate;
    if (draws[i] == Draw::kHeader) arrivals += estimate;
  }
  double of_call = quotient(calls, entries, rest);
  double of_iteration = quotient(iterations, arrivals, rest);
  for (size_t i = 0; i < schema.slots.size(); ++i) {
    Draw draw = i < draws.size() ? draws[i] : Draw::kEither;
    double factor = draw == Draw::kEither ? rest : draw == Draw::kCall ? of_call : of_iteration;
    if (factor != 1) stretch_slot(schema.slots[i], seen, factor);
  }
}

namespace {

double flow_mass(const Schema& schema, const Observed& seen) {
  double sum = 0;
  for (const Slot& slot : schema.slots) {
    const bool flow = slot.kind == SlotKind::kBlock || slot.kind == SlotKind::kEdge;
    if (flow && slot.word < seen.estimates.size()) {
      sum += static_cast<double>(seen.estimates[slot.word]);
    }
  }
  return sum;
}

double opportunities(double calls, double iterations, uint64_t burst) {
  return calls + (burst == 0 ? 0 : iterations / static_cast<double>(burst));
}

}  // namespace

void StreamSum::rake_counting_squares(Observed& seen, uint64_t calls, uint64_t iterations,
                                      double rest, uint64_t& squares) const {
  const double before = flow_mass(schema_, seen);
  rake(schema_, draws_, seen, calls, iterations, rest);
  const double after = flow_mass(schema_, seen);
  if (before > 0 && after != before) squares = times(squares, after / before * (after / before));
}

void StreamSum::add(const Stream& s, Observed& seen) {
  uint64_t squares = s.squares;
  const bool sampled = s.samples != 0 && !seen.estimates.empty();
  if (sampled && !one_countdown_) {
    const Coverage coverage{.covered = s.covered};
    rake_counting_squares(seen, s.calls, s.iterations,
                          coverage.stretch(s.calls, s.iterations, s.burst), squares);
  }
  Stream raked = s;
  raked.squares = squares;
  const Ran ran{static_cast<double>(s.calls), static_cast<double>(s.iterations)};
  add_raked(raked, sampled ? ran : Ran{});
}

void StreamSum::add_raked(const Stream& all, const Ran& seen) {
  add_saturating(all_.calls, all.calls);
  add_saturating(all_.iterations, all.iterations);
  add_saturating(squares_, all.squares);
  all_.covered += all.covered;
  all_.burst = std::max(all_.burst, all.burst);
  sampled_.calls += seen.calls;
  sampled_.iterations += seen.iterations;
}

void StreamSum::finish(Observed& sum) {
  if (sum.estimates.empty()) return;
  const double ran = opportunities(static_cast<double>(all_.calls),
                                   static_cast<double>(all_.iterations), all_.burst);
  const double seen = one_countdown_
                          ? all_.covered
                          : opportunities(sampled_.calls, sampled_.iterations, all_.burst);
  const double rest = ran > 0 && seen > 0 && all_.burst != 0 ? ran / seen : 1;
  const bool all_seen = !one_countdown_ && sampled_.calls == static_cast<double>(all_.calls) &&
                        sampled_.iterations == static_cast<double>(all_.iterations);
  const bool none_seen = !one_countdown_ && sampled_.calls == 0 && sampled_.iterations == 0;
  if (!all_seen && !none_seen)
    rake_counting_squares(sum, all_.calls, all_.iterations, rest, squares_);
}

}  // namespace uptier::profile
