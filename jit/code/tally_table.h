// TallyTable: what optimized code counts exactly, and which blocks each count stands for.
//
// Optimized code adds to words of its thread: the rounds of its loops, and 1 when it is entered, unless
// the stub counts its entries. Most blocks have no word of their own: their share names a word, and how
// often the block runs for each round or entry that the word counts:
//
//     executions of a site = sum over its shares of per * count(word)
//
// `per` is 1 for the block at the start of a loop, or of the code. Elsewhere it is the frequency that the code was
// compiled for, so it is a probability of branches, never a number of rounds.
//
//   Thread: none of its own; constant once the code is in service.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "uptier/ids.h"

namespace uptier::jit {

// A word of the thread, by its number (sampler/context.h), and how much one round or entry adds to it.
struct TallyWord {
  static constexpr uint32_t kByStub = UINT32_MAX;  // counted there, in no word

  uint32_t at = 0;
  uint32_t step = 1;

  friend bool operator==(const TallyWord&, const TallyWord&) = default;
};

struct TallyShare {
  SiteId site = 0;    // of a block
  uint32_t body = 0;  // whose: 0 the method's own, k entry k - 1 of CodeTables::inlined
  uint32_t word = 0;  // in TallyTable::words
  float per = 1;
  bool exact = false;  // the block runs once for each one of the word, whatever branches do

  friend bool operator==(const TallyShare&, const TallyShare&) = default;
};

struct TallyTable {
  static constexpr uint32_t kEntries = 0;  // the word that counts entries of the code

  std::vector<TallyWord> words;  // the first is of entries, the others in a row; empty: none
  std::vector<TallyShare> shares;

  // The words of threads that it has, which lie in a row.
  bool counts_entries() const { return !words.empty() && words[0].at != TallyWord::kByStub; }
  uint32_t taken() const {
    return static_cast<uint32_t>(words.size()) - (counts_entries() || words.empty() ? 0 : 1);
  }
  uint32_t first() const { return counts_entries() ? words[0].at : words[1].at; }

  friend bool operator==(const TallyTable&, const TallyTable&) = default;
};

// Gives out words of threads. `take` returns the first of `count` in a row, or nothing when there
// are no more; then the code counts nothing.
class TallySource {
 public:
  virtual ~TallySource() = default;
  virtual std::optional<uint32_t> take(uint32_t count) = 0;
  // Takes words back that no code has used. Where memory for that is refused, they stay taken.
  virtual void give_unused(uint32_t first, uint32_t count) noexcept = 0;
};

struct TallyRequest {
  TallySource* source = nullptr;  // null: nothing is counted
  bool entries = true;            // count entries as well: no stub does
};

}  // namespace uptier::jit
