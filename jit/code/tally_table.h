// TallyTable: the exact counters of optimized code, and which blocks each counter stands for.
//
// Optimized code adds to words of its thread: the iterations of its loops, and 1 when it is
// entered, unless the stub counts its entries. Most blocks have no word of their own. Their share
// names a word, and how often the block runs for each iteration or entry that the word counts:
//
//     executions of a site = sum over its shares of per * count(word)
//
// `per` is 1 for the block whose start counts: at the start of a loop, or of the code, or a block
// that stands for a loop with short iterations. For other blocks it is the frequency that the code
// was compiled for, so it follows from probabilities of branches, never from a number of iterations.
//
//   Thread: none of its own; constant once the code is in service.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "uptier/ids.h"

namespace uptier::jit {

// A word of the thread, by its number (sampler/context.h), and the amount that one iteration or
// entry adds to it.
struct TallyWord {
  static constexpr uint32_t kByStub = UINT32_MAX;  // the stub counts; there is no word

  uint32_t at = 0;
  uint32_t step = 1;

  friend bool operator==(const TallyWord&, const TallyWord&) = default;
};

struct TallyShare {
  SiteId site = 0;    // of a block
  uint32_t body = 0;  // of the site: 0 the method's own, k CodeTables::inlined[k - 1]
  uint32_t word = 0;  // in TallyTable::words
  float per = 1;
  bool exact = false;  // the block runs once for each count of the word, whatever branches do

  friend bool operator==(const TallyShare&, const TallyShare&) = default;
};

struct TallyTable {
  static constexpr uint32_t kEntries = 0;  // the word that counts entries of the code

  std::vector<TallyWord> words;  // the first counts entries, the others are consecutive; empty:
                                 // nothing is counted
  std::vector<TallyShare> shares;

  // The words of threads that it uses, which are consecutive.
  bool counts_entries() const { return !words.empty() && words[0].at != TallyWord::kByStub; }
  uint32_t taken() const {
    return static_cast<uint32_t>(words.size()) - (counts_entries() || words.empty() ? 0 : 1);
  }
  uint32_t first() const { return counts_entries() ? words[0].at : words[1].at; }

  friend bool operator==(const TallyTable&, const TallyTable&) = default;
};

// Allocates words of threads. `take` returns the first of `count` consecutive words, or nothing if
// there are not enough; then the code counts nothing.
class TallySource {
 public:
  virtual ~TallySource() = default;
  virtual std::optional<uint32_t> take(uint32_t count) = 0;
  // Takes back words that no code has used. If memory for that is refused, they stay taken.
  virtual void give_unused(uint32_t first, uint32_t count) noexcept = 0;
};

struct TallyRequest {
  TallySource* source = nullptr;  // null: nothing is counted
  bool entries = true;            // count entries too, because no stub does
};

}  // namespace uptier::jit
