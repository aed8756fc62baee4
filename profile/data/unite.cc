#include "profile/data/unite.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace uptier::profile {
namespace {

bool before(const Slot& a, const Slot& b) {
  return std::tie(a.kind, a.site) < std::tie(b.kind, b.site);
}

}  // namespace

Schema united(const Schema& a, const Schema& b, bool& cut) {
  Schema sum;
  sum.version = a.version;
  sum.cfg_hash = a.cfg_hash;
  sum.slots.reserve(std::max(a.slots.size(), b.slots.size()));
  uint64_t words = 0, data_words = 0;
  size_t i = 0, j = 0;
  cut = false;
  while (i < a.slots.size() || j < b.slots.size()) {
    const bool only_a =
        j == b.slots.size() || (i < a.slots.size() && before(a.slots[i], b.slots[j]));
    const bool only_b = i == a.slots.size() || (!only_a && before(b.slots[j], a.slots[i]));
    Slot slot = only_b ? b.slots[j] : a.slots[i];
    if (!only_a && !only_b) slot.top = std::max(slot.top, b.slots[j].top);
    i += only_b ? 0 : 1;
    j += only_a ? 0 : 1;
    data_words += slot.words + 2 * uint64_t{slot.top};
    cut = data_words > Schema::kMaxWords;
    if (cut) break;
    slot.word = static_cast<uint32_t>(words);
    words += slot.words;
    sum.slots.push_back(slot);
  }
  return sum;
}

void spread(const Schema& to, MethodProfile& method) {
  std::vector<uint64_t> counts(to.words()), estimates(to.words());
  for (const Slot& from : method.schema.slots) {
    const Slot* slot = to.find(from.kind, from.site);
    if (slot == nullptr) {
      method.tables.erase({from.kind, from.site});
      continue;
    }
    std::copy_n(method.counts.begin() + from.word, from.words, counts.begin() + slot->word);
    std::copy_n(method.estimates.begin() + from.word, from.words, estimates.begin() + slot->word);
  }
  method.schema = to;
  method.counts = std::move(counts);
  method.estimates = std::move(estimates);
}

}  // namespace uptier::profile
