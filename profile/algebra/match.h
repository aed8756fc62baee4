// match.h: what an old profile of a method says about its code after an edit.
//
// Law: the anchors of both bodies (calls, probes, loops) are aligned by a longest common
// subsequence, which keeps their order. The two are taken for one method if
//
//     similarity = 2 * matched / (anchors there + anchors here) >= kFloor
//
// over the calls and probes, or over the loops where neither has a call; and if half of the blocks
// are found again. A body without any anchor is not matched: nothing says what became of it.
//
// Blocks are matched from there: those with matched anchors, the entry, and between two neighbours
// of these as many from the front, and then from the back, as have the same number of successors.
// Counts of matched blocks, of edges between them, and of matched sites are taken over. What is not
// found again is dropped; a block that is new gets what flows into it from its predecessors, in
// equal shares, since a count of 0 would say that it never runs. All of it is in the report.
//
// Source: longest common subsequence of call anchors and the floor of 80 % are those of LLVM's
// SampleProfileMatcher (stale profile matching).
#pragma once

#include <map>
#include <string>

#include "uptier/profile_calls.h"

namespace uptier::profile {

inline constexpr double kMatchFloor = 0.8;
inline constexpr double kBlockFloor = 0.5;

struct MatchReport {
  bool accepted = false;
  std::string why;         // it was not; empty if it was
  uint64_t there = 0;      // anchors of the old code
  uint64_t here = 0;       // and of the new
  uint64_t matched = 0;    // of both
  double similarity = 0;   // 0..1
  uint64_t blocks = 0;     // of the new code
  uint64_t recovered = 0;  // of these, with counts of the old
  uint64_t inferred = 0;   // with counts from their predecessors
  uint64_t dropped = 0;    // slots of the old profile that had counts and are not found again

  // "9 of 10 anchors matched (similarity 0.95), 17 of 20 blocks recovered, 3 inferred, 2 slots
  // dropped", or the same after why it was not accepted.
  std::string text() const;
};

// Which site of the new code each of the old one is.
struct SiteMap {
  std::vector<SiteId> blocks;      // by site - 1; 0 for none
  std::map<SiteId, SiteId> sites;  // of calls and probes
  std::map<SiteId, SiteId> loops;
};

// Aligns two bodies. O(anchors^2) time and memory, of at most kMaxAnchors each.
inline constexpr size_t kMaxAnchors = 2000;
SiteMap match_shapes(const CodeShape& there, const CodeShape& here, MatchReport& report);

// Returns the profile of the new code, of `schema` and the key of `old`, or one that has counted
// nothing if the report says that it is not accepted. `old` passes check().
MethodProfile match_profile(const MethodProfile& old, const CodeShape& there, const Schema& schema,
                            const CodeShape& here, MatchReport& report);

}  // namespace uptier::profile
