// schema.h: how each word of a slot merges, and runs of a schema, its compact form.
//
// A run stands for `count` slots of one kind and size with consecutive sites. Runs are maximal, so
// a schema has exactly one list of runs; the schema of a method with block counts is a single run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uptier/profile.h"

namespace uptier::profile {

using uptier::Schema;
using uptier::Slot;
using uptier::SlotKind;

// How a word behaves in a merge, and from one cumulative snapshot to the next.
enum class WordRule : uint8_t {
  kSum,       // saturating; does not fall
  kOther,     // the same, but may give counts to the slot's table and take counts from it
  kWide,      // together with the next word a sum modulo 2^128; its terms may be negative
  kWideHigh,  // that next word
  kMin,       // signed least and greatest, valid if the slot's first word is not 0
  kMax,
  kGreatest,  // unsigned
};

struct Word {
  std::string_view name;  // as in the text form; empty for kWideHigh
  WordRule rule;
};

// Returns the words of a slot of the kind; empty for an unknown kind.
std::span<const Word> words_of(SlotKind kind);

// Returns whether a word is a sum, and so has an estimate.
constexpr bool is_sum(WordRule rule) { return rule <= WordRule::kWideHigh; }

// Returns the index of a slot's `other` in counts; the kind must have a table.
uint32_t other_word(const Slot& slot);

struct SlotRun {
  SlotKind kind = SlotKind::kBlock;
  uint32_t words_each = 1;
  SiteId first_site = 1;
  uint32_t count = 0;
  uint32_t top = 0;

  friend bool operator==(const SlotRun&, const SlotRun&) = default;
};

// Returns the runs of a valid schema.
std::vector<SlotRun> runs_of(const Schema& schema);

// Rebuilds the schema from its runs.
//
// `data_words` is a size of data that the caller has already bounded; runs that need more are
// refused before anything of their size is allocated. Fails if the runs are not exactly the result
// of runs_of for a schema that passes Schema::check.
Result<Schema> schema_of_runs(uint32_t version, uint64_t cfg_hash, std::span<const SlotRun> runs,
                              uint32_t data_words);

// Prints "schema 1 cfg 0x... words 4: block 1..3 call_target 4 top 16".
std::string to_text(const Schema& schema);

}  // namespace uptier::profile
