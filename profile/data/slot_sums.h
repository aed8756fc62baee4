// slot_sums.h: the arithmetic of one slot's words and of its table, by the rules of words_of: for
// methods, and for sites of inlined bodies.
//
// `into` and `from` point to the slot's first word.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "profile/base/numbers.h"
#include "profile/data/schema.h"

namespace uptier::profile {

using uptier::Table;
using uptier::TableEntry;

// Adds a number, saturating; counts the sums that saturated at 2^64-1.
void add_counted(uint64_t& sum, uint64_t value, uint64_t& saturated);

// As for merge.
void sum_slot(std::span<const Word> words, uint64_t* into, const uint64_t* from,
              uint64_t& saturated);
void sum_estimates(std::span<const Word> words, uint64_t* into, const uint64_t* from,
                   uint64_t& saturated);
void sum_table(Table& into, const Table& from, uint64_t& saturated);

// As for subtract: no sum falls below 0, and entries that become 0 are removed; `missing` counts
// the sums that would have fallen below 0.
void take_off(uint64_t& from, uint64_t what, uint64_t& missing);
void take_off(std::span<const Word> words, uint64_t* from, const uint64_t* what, uint64_t& missing);
void take_off(Table& from, const Table& what, uint64_t& missing);

// A factor whose denominator is not 0; counts saturated results. Entries that become 0 are removed.
struct Factor {
  uint64_t numerator;
  uint64_t denominator;
  uint64_t saturated = 0;

  void apply(uint64_t& count);
  void apply(std::span<const Word> rules, uint64_t* words);
  void apply(Table& table);
};

// Keeps the `entries` greatest entries of a table; returns the sum and the number of the others.
std::pair<TableEntry, uint64_t> trim_table(Table& table, size_t entries);

}  // namespace uptier::profile
