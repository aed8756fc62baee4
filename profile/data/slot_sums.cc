#include "profile/data/slot_sums.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace uptier::profile {
namespace {

bool is_empty_entry(const std::pair<const uptier::TableKey, TableEntry>& item) {
  return item.second == TableEntry{};
}

void add_wide(uint64_t* into, const uint64_t* from) {
  const Wide sum = add_wrapping(load_wide(into), load_wide(from));
  store_wide(into, sum);
}

// Keeps the extreme of the sides that have seen a value; the counts say how many each has seen.
void keep_extreme(WordRule rule, uint64_t& into, uint64_t into_count, uint64_t from,
                  uint64_t from_count) {
  const bool less = static_cast<int64_t>(from) < static_cast<int64_t>(into);
  const bool extreme = rule == WordRule::kMin ? less : !less;
  if (into_count == 0 && from_count == 0) {
    into = 0;
  } else if (into_count == 0 || (from_count != 0 && extreme)) {
    into = from;
  }
}

}  // namespace

void add_counted(uint64_t& sum, uint64_t value, uint64_t& saturated) {
  saturated += add_saturating(sum, value) ? 1 : 0;
}

void sum_slot(std::span<const Word> words, uint64_t* into, const uint64_t* from,
              uint64_t& saturated) {
  const uint64_t into_count = into[0], from_count = from[0];
  for (size_t i = 0; i < words.size(); ++i) {
    switch (words[i].rule) {
      case WordRule::kSum:
      case WordRule::kOther: add_counted(into[i], from[i], saturated); break;
      case WordRule::kWide: add_wide(into + i, from + i); break;
      case WordRule::kWideHigh: break;
      case WordRule::kMin:
      case WordRule::kMax:
        keep_extreme(words[i].rule, into[i], into_count, from[i], from_count);
        break;
      case WordRule::kGreatest: into[i] = std::max(into[i], from[i]); break;
    }
  }
}

void sum_estimates(std::span<const Word> words, uint64_t* into, const uint64_t* from,
                   uint64_t& saturated) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].rule == WordRule::kWide) {
      add_wide(into + i, from + i);
    } else if (words[i].rule <= WordRule::kOther) {
      add_counted(into[i], from[i], saturated);
    }
  }
}

void sum_table(Table& into, const Table& from, uint64_t& saturated) {
  for (const auto& [key, entry] : from) {
    TableEntry& kept = into[key];
    add_counted(kept.count, entry.count, saturated);
    add_counted(kept.estimate, entry.estimate, saturated);
  }
}

void take_off(uint64_t& from, uint64_t what, uint64_t& missing) {
  missing += from < what ? 1 : 0;
  from -= std::min(from, what);
}

void take_off(std::span<const Word> words, uint64_t* from, const uint64_t* what,
              uint64_t& missing) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].rule == WordRule::kWide) {
      store_wide(from + i, sub_wrapping(load_wide(from + i), load_wide(what + i)));
    } else if (words[i].rule <= WordRule::kOther) {
      take_off(from[i], what[i], missing);
    }
  }
}

void take_off(Table& from, const Table& what, uint64_t& missing) {
  for (const auto& [key, entry] : what) {
    TableEntry& kept = from[key];
    take_off(kept.count, entry.count, missing);
    take_off(kept.estimate, entry.estimate, missing);
  }
  std::erase_if(from, is_empty_entry);
}

void Factor::apply(uint64_t& count) { count = mul_div(count, numerator, denominator, saturated); }

void Factor::apply(std::span<const Word> rules, uint64_t* words) {
  for (size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].rule == WordRule::kWide) {
      const Wide wide = load_wide(words + i);
      store_wide(words + i, mul_div(wide, numerator, denominator, saturated));
    } else if (rules[i].rule <= WordRule::kOther) {
      apply(words[i]);
    }
  }
}

void Factor::apply(Table& table) {
  for (auto& [key, entry] : table) {
    apply(entry.count);
    apply(entry.estimate);
  }
  std::erase_if(table, is_empty_entry);
}

std::pair<TableEntry, uint64_t> trim_table(Table& table, size_t entries) {
  std::vector<Table::iterator> order;
  for (auto at = table.begin(); at != table.end(); ++at) order.push_back(at);
  // Stable, so that of equal counts the smaller key comes first.
  std::ranges::stable_sort(order, std::greater<>{}, [](auto at) { return at->second.count; });
  TableEntry moved;
  uint64_t count = 0;
  for (size_t i = entries; i < order.size(); ++i, ++count) {
    add_saturating(moved.count, order[i]->second.count);
    add_saturating(moved.estimate, order[i]->second.estimate);
    table.erase(order[i]);
  }
  return {moved, count};
}

}  // namespace uptier::profile
