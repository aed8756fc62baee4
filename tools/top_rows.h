// TopRows: what changed between two readings of a process, by method.
//
// Law: a table lists the methods and places that were sampled since the last one, most time first.
// The first table counts from the beginning. Numbers of a reading only grow, so those of a table
// are differences.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "uptier/live_time.h"

namespace uptier::tools {

// Samples since the last table, and since sampling began.
struct TopSums {
  uint64_t samples = 0;
  uint64_t ns = 0;
  uint64_t all_samples = 0;
  uint64_t all_ns = 0;
};

// A method in one kind of code.
struct TopCode {
  Tier tier = Tier::kHost;
  Copy copy = Copy::kPlain;
  bool osr = false;
  bool inlined = false;
  TopSums sums;
};

struct TopRow {
  LiveRow method;  // for its names, `serves` and `state`
  TopSums sums;
  std::vector<TopCode> code;  // most recent time first; not empty
};

struct TopTable {
  LiveTime now;           // without rows
  TopSums sums;           // of all samples
  uint64_t squares = 0;   // of the samples since the last table, see LiveTime
  uint64_t asked_ns = 0;  // processor time since the last table
  uint64_t dropped = 0;   // samples dropped since the last table
  uint64_t ns = 0;        // time since the last table
  std::vector<TopRow> rows;

  // Returns the share of a row in the time since the last table.
  ShareEstimate share(const TopRow& r) const;
};

class TopRows {
 public:
  // Returns the table of a new reading, which becomes the last one.
  TopTable next(LiveTime now);

 private:
  // Place, method, tier, copy, osr, inlined.
  using Key = std::tuple<TimePlace, uint32_t, Tier, Copy, bool, bool>;
  static Key key_of(const LiveRow& r);

  LiveTime last_;                // without rows
  std::map<Key, LiveRow> rows_;  // of the last reading
};

}  // namespace uptier::tools
