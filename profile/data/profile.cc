// The queries of MethodProfile.
#include <algorithm>

#include "profile/base/numbers.h"
#include "profile/data/estimate.h"
#include "profile/data/schema.h"

namespace uptier {
namespace {

using profile::is_sum;
using profile::Word;
using profile::WordRule;

// A method's words are only read as far as they exist: check() may not have been called.
bool reaches(const Slot& slot, size_t words) {
  return slot.word <= words && slot.words <= words - slot.word;
}

Status check_table(const Schema& schema, std::pair<SlotKind, SiteId> site, const Table& table) {
  const auto broken = [&site](const std::string& rule) {
    return Error{ErrorCode::kInvalidInput, "table of " + std::string(slot_kind_name(site.first)) +
                                               " " + std::to_string(site.second) + ": " + rule};
  };
  if (!has_table(site.first)) return broken("the kind has no tables");
  if (schema.find(site.first, site.second) == nullptr) return broken("the site has no slot");
  if (table.empty()) return broken("no entries");
  const bool callees = site.first == SlotKind::kCallTarget;
  for (const auto& [key, entry] : table) {
    const bool possible = callees ? key.value <= UINT32_MAX : key.module_key == 0;
    if (!possible) return broken("an impossible key");
    if (entry == TableEntry{}) return broken("an entry without count");
  }
  return {};
}

}  // namespace

const MethodProfile* Profile::find(MethodKey key) const {
  const auto at = methods.find(key);
  return at == methods.end() ? nullptr : &at->second;
}

std::span<const uint64_t> MethodProfile::words(SlotKind kind, SiteId site) const {
  const Slot* slot = schema.find(kind, site);
  if (slot == nullptr || !reaches(*slot, counts.size())) return {};
  return std::span(counts).subspan(slot->word, slot->words);
}

const Table* MethodProfile::table(SlotKind kind, SiteId site) const {
  const auto at = tables.find({kind, site});
  return at == tables.end() ? nullptr : &at->second;
}

std::optional<uint64_t> MethodProfile::count(SlotKind kind, SiteId site) const {
  const Slot* slot = schema.find(kind, site);
  const bool known = slot != nullptr && slot->word < counts.size() && kind != SlotKind::kGauge;
  if (!known) return std::nullopt;
  uint64_t sum = counts[slot->word];
  const Table* entries = kind == SlotKind::kCallTarget ? table(kind, site) : nullptr;
  if (entries == nullptr) return sum;
  for (const auto& [key, entry] : *entries) profile::add_saturating(sum, entry.count);
  return sum;
}

std::optional<Estimate> MethodProfile::estimate(SlotKind kind, SiteId site) const {
  return profile::estimate_at(*this, kind, site);
}

std::optional<Estimate> MethodProfile::loop_cycles(SiteId site) const {
  return profile::loop_cycles_at(*this, site);
}

void MethodProfile::weigh(uint64_t weight) {
  estimates.assign(counts.size(), 0);
  weight_squares = 0;
  for (const Slot& slot : schema.slots) {
    if (!reaches(slot, counts.size())) continue;
    const std::span<const Word> words = profile::words_of(slot.kind);
    for (size_t i = 0; i < words.size(); ++i) {
      const size_t at = slot.word + i;
      if (words[i].rule == WordRule::kWide) {
        profile::Wide sum = profile::mul_wrapping(profile::load_wide(&counts[at]), weight);
        const bool squares = slot.kind == SlotKind::kLoop;
        if (squares) sum = profile::mul_wrapping(sum, weight);
        profile::store_wide(&estimates[at], sum);
      } else if (words[i].rule <= WordRule::kOther) {
        estimates[at] = profile::mul_saturating(counts[at], weight);
      }
    }
  }
  for (auto& [site, table] : tables) {
    for (auto& [key, entry] : table) {
      entry.estimate = profile::mul_saturating(entry.count, weight);
    }
  }
}

Status MethodProfile::check() const {
  if (const Status status = schema.check(); !status.ok()) return status;
  const auto broken = [this](const std::string& rule) {
    return Error{ErrorCode::kInvalidInput, "profile of " + name + ": " + rule};
  };
  for (const auto& [words, what] :
       {std::pair(&counts, " counts for "), std::pair(&estimates, " estimates for ")}) {
    if (words->size() == schema.words()) continue;
    return broken(std::to_string(words->size()) + what + std::to_string(schema.words()) + " words");
  }
  for (const Slot& slot : schema.slots) {
    const std::span<const Word> words = profile::words_of(slot.kind);
    for (size_t i = 0; i < words.size(); ++i) {
      if (is_sum(words[i].rule) || estimates[slot.word + i] == 0) continue;
      return broken("an estimate of " + std::string(words[i].name) + ", which is no sum");
    }
  }
  for (const auto& [site, table] : tables) {
    const Status status = check_table(schema, site, table);
    if (!status.ok()) return broken(status.error().message);
  }
  return {};
}

}  // namespace uptier
