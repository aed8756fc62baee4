#include <algorithm>
#include <cmath>

#include "profile/estimate.h"
#include "profile/numbers.h"

namespace uptier::profile {
namespace {

uint64_t times(uint64_t value, double factor) {
  long double product = static_cast<long double>(value) * factor;
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
  samples = samples_now;
}

double Coverage::stretch(uint64_t calls, uint64_t iterations, uint64_t burst) const {
  if (burst == 0 || covered == 0) return 1;
  double there_were =
      static_cast<double>(calls) + static_cast<double>(iterations) / static_cast<double>(burst);
  return there_were == 0 ? 1 : there_were / covered;
}

void stretch(const Schema& schema, Observed& seen, double factor) {
  if (factor == 1 || seen.estimates.empty()) return;
  for (const Slot& slot : schema.slots) {
    std::span<const Word> words = words_of(slot.kind);
    for (uint32_t i = 0; i < words.size(); ++i) {
      uint64_t* word = &seen.estimates[slot.word + i];
      if (words[i].rule == WordRule::kSum || words[i].rule == WordRule::kOther) {
        *word = std::max(times(*word, factor), seen.counts[slot.word + i]);
      } else if (words[i].rule == WordRule::kWide) {
        stretch_wide(word, factor);
      }
    }
  }
  for (auto& [site, table] : seen.tables) {
    for (auto& [key, entry] : table) {
      entry.estimate = std::max(times(entry.estimate, factor), entry.count);
    }
  }
}

}  // namespace uptier::profile
