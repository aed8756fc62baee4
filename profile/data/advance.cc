#include <algorithm>
#include <utility>

#include "profile/base/numbers.h"
#include "profile/data/estimate.h"

namespace uptier::profile {
namespace {

// An entry of a table, or `other`, with its counts in two successive snapshots.
struct Cell {
  uint64_t before;
  uint64_t after;
  uint64_t* estimate;
};

// Returns whole * part / of, for part <= of.
UnsignedWide share(UnsignedWide whole, UnsignedWide part, UnsignedWide of) {
  const bool exact = whole <= kMaxCount && of <= kMaxCount;
  if (exact) return whole * part / of;
  using Float = long double;
  return static_cast<UnsignedWide>(static_cast<Float>(whole) *
                                   (static_cast<Float>(part) / static_cast<Float>(of)));
}

uint64_t saturate(UnsignedWide value) {
  return value > kMaxCount ? kMaxCount : static_cast<uint64_t>(value);
}

void advance_sum(uint64_t before, uint64_t after, uint64_t& estimate, uint64_t weight) {
  uint64_t saturated = 0;
  if (after < before) {
    estimate = mul_div(estimate, after, before, saturated);
  } else {
    add_saturating(estimate, mul_saturating(after - before, weight));
  }
}

// The changes of a table and its `other`, added up.
struct Turnover {
  UnsignedWide fallen = 0;
  UnsignedWide risen = 0;
  UnsignedWide released = 0;  // estimates of the counts that fell
};

Turnover release(std::vector<Cell>& cells) {
  Turnover sum;
  for (Cell& cell : cells) {
    if (cell.after >= cell.before) {
      sum.risen += cell.after - cell.before;
      continue;
    }
    const uint64_t estimate = *cell.estimate;
    advance_sum(cell.before, cell.after, *cell.estimate, 1);
    sum.fallen += cell.before - cell.after;
    sum.released += estimate - *cell.estimate;
  }
  return sum;
}

// Each share is a difference of cumulative shares, so that nothing is lost to rounding.
void advance_cells(std::vector<Cell>& cells, uint64_t weight) {
  const Turnover sum = release(cells);
  if (sum.risen == 0) return;
  const bool grew = sum.risen >= sum.fallen;
  const UnsignedWide fresh = grew ? sum.risen - sum.fallen : 0;
  const UnsignedWide moved = grew ? sum.released : share(sum.released, sum.risen, sum.fallen);
  UnsignedWide up_to = 0;
  for (Cell& cell : cells) {
    if (cell.after <= cell.before) continue;
    const UnsignedWide from = up_to;
    up_to += cell.after - cell.before;
    const auto due = [&](UnsignedWide whole) {
      return saturate(share(whole, up_to, sum.risen) - share(whole, from, sum.risen));
    };
    const uint64_t came_on = fresh == sum.risen ? cell.after - cell.before : due(fresh);
    add_saturating(*cell.estimate, mul_saturating(came_on, weight));
    add_saturating(*cell.estimate, due(moved));
  }
}

// Updates the estimates of one site's table and `other` to the new counts.
void advance_table(const Table& before, Table& after, Cell other, uint64_t weight) {
  std::vector<uint64_t> left;  // estimates of entries that are gone
  left.reserve(before.size());
  std::vector<Cell> cells = {other};
  for (const auto& [key, entry] : before) {
    if (after.contains(key)) continue;
    left.push_back(entry.estimate);
    cells.push_back({entry.count, 0, &left.back()});
  }
  for (auto& [key, entry] : after) {
    const auto at = before.find(key);
    const TableEntry was = at == before.end() ? TableEntry{} : at->second;
    entry.estimate = was.estimate;
    cells.push_back({was.count, entry.count, &entry.estimate});
  }
  advance_cells(cells, weight);
}

void advance_words(const Slot& slot, Observed& seen, const Observed& now, uint64_t weight) {
  const std::span<const Word> words = words_of(slot.kind);
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t at = slot.word + i;
    uint64_t* estimate = &seen.estimates[at];
    if (words[i].rule == WordRule::kSum) {
      advance_sum(seen.counts[at], now.counts[at], *estimate, weight);
    } else if (words[i].rule == WordRule::kWide) {
      const Wide step = sub_wrapping(load_wide(&now.counts[at]), load_wide(&seen.counts[at]));
      store_wide(estimate, add_wrapping(load_wide(estimate), mul_wrapping(step, weight)));
    }
  }
}

// The number of executions, possibly fractional, that each timed one stands for.
struct TimedFactor {
  uint64_t due;
  uint64_t came;  // at most `due`, not 0

  // Returns whole * due / came, rounded to the nearest.
  uint64_t times(uint64_t whole) const {
    return saturate((UnsignedWide{whole} * due + came / 2) / came);
  }

  // Returns squares * (due / came)^2.
  Wide times_squared(Wide squares) const {
    const uint64_t factor = due / came;
    const bool exact = due % came == 0 && factor <= UINT32_MAX;
    if (exact) return mul_wrapping(squares, factor * factor);
    using Float = long double;
    const Float f = static_cast<Float>(due) / static_cast<Float>(came);
    const Float product = static_cast<Float>(squares) * f * f;
    return product < static_cast<Float>(kMaxWide) ? static_cast<Wide>(product) : kMaxWide;
  }
};

// Returns the factor of `came` executions: together they stand for all executions that no others
// stand for yet, and at least for `weight` each.
TimedFactor stands_for(uint64_t all, uint64_t stood_for, uint64_t came, uint64_t weight) {
  const uint64_t open = all - std::min(all, stood_for);
  return {std::max(open, mul_saturating(came, weight)), came};
}

bool falls(const Slot& slot, const Observed& seen, const Observed& now) {
  for (uint32_t i = 0; i < slot_word::kLoopSquares; ++i) {
    if (now.counts[slot.word + i] < seen.counts[slot.word + i]) return true;
  }
  const Wide step = sub_wrapping(load_wide(&now.counts[slot.word + slot_word::kLoopSquares]),
                                 load_wide(&seen.counts[slot.word + slot_word::kLoopSquares]));
  return step < 0;
}

// The least number of timed executions for which iterations are used to estimate the others.
constexpr uint64_t kEnoughTimed = 16;

// Timed executions stand for all executions since the previous timed ones. See estimate.h.
void advance_loop(const Slot& slot, Observed& seen, const Observed& now, uint64_t weight) {
  if (falls(slot, seen, now)) return advance_words(slot, seen, now, weight);
  using namespace slot_word;
  const uint64_t* before = &seen.counts[slot.word];
  const uint64_t* after = &now.counts[slot.word];
  uint64_t* estimate = &seen.estimates[slot.word];
  for (const uint32_t at : {kLoopEntries, kLoopIterations}) {
    advance_sum(before[at], after[at], estimate[at], weight);
  }
  const uint64_t came = after[kLoopTimed] - before[kLoopTimed];
  if (came == 0) return;
  const TimedFactor entries =
      stands_for(estimate[kLoopEntries], estimate[kLoopTimed], came, weight);
  const uint64_t iterations = after[kLoopTimedIterations] - before[kLoopTimedIterations];
  const bool all_timed = entries.due == mul_saturating(came, weight);
  const bool by_iterations = came >= kEnoughTimed && iterations != 0;
  TimedFactor f = entries;
  if (all_timed) {
    f = {weight, 1};
  } else if (by_iterations) {
    f = stands_for(estimate[kLoopIterations], estimate[kLoopTimedIterations], iterations, weight);
  }
  add_saturating(estimate[kLoopTimed], entries.due);
  for (const uint32_t at : {kLoopTimedIterations, kLoopCycles, kLoopExclusiveCycles}) {
    add_saturating(estimate[at], f.times(after[at] - before[at]));
  }
  const Wide step = sub_wrapping(load_wide(after + kLoopSquares), load_wide(before + kLoopSquares));
  store_wide(estimate + kLoopSquares,
             add_wrapping(load_wide(estimate + kLoopSquares), f.times_squared(step)));
}

void advance_any(const Slot& slot, Observed& seen, const Observed& now, uint64_t weight) {
  if (slot.kind == SlotKind::kLoop) return advance_loop(slot, seen, now, weight);
  advance_words(slot, seen, now, weight);
}

}  // namespace

void advance(Observed& seen, const Schema& schema, Observed now, uint64_t weight) {
  weight = std::max<uint64_t>(weight, 1);
  seen.counts.resize(schema.words());
  seen.estimates.resize(schema.words());
  const Table empty;
  for (const Slot& slot : schema.slots) {
    advance_any(slot, seen, now, weight);
    if (!has_table(slot.kind)) continue;
    const auto before = seen.tables.find({slot.kind, slot.site});
    const auto after = now.tables.find({slot.kind, slot.site});
    Table none;
    const uint32_t at = other_word(slot);
    advance_table(before == seen.tables.end() ? empty : before->second,
                  after == now.tables.end() ? none : after->second,
                  {seen.counts[at], now.counts[at], &seen.estimates[at]}, weight);
  }
  seen.counts = std::move(now.counts);
  seen.tables = std::move(now.tables);
}

}  // namespace uptier::profile
