// match.h: applies an old profile of a method to its code after an edit.
//
// Law: the anchors of both bodies (calls, probes, loops) are aligned by a longest common
// subsequence, which keeps their order. The two count as the same method if
//
//     similarity = 2 * matched / (anchors there + anchors here) >= kFloor
//
// over the calls and probes, or over the loops if neither has a call; and if half of the blocks are
// found again. A body without any anchor is not matched: nothing tells what became of it.
//
// Blocks are matched from these: blocks with matched anchors, the entry, and between two neighbours
// of these as many from the front, and then from the back, as have the same number of successors.
// Counts of matched blocks, of edges between them, and of matched sites are kept. Counts of other
// sites are dropped. A new block gets the flow into it from its predecessors, in equal shares,
// since a count of 0 would mean that it never runs. The report counts all of this.
//
// Source: the longest common subsequence of call anchors and the floor of 80 % come from LLVM's
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
  std::string why;         // the reason if it was not accepted; otherwise empty
  uint64_t there = 0;      // anchors of the old code
  uint64_t here = 0;       // anchors of the new code
  uint64_t matched = 0;    // anchors of both
  double similarity = 0;   // 0..1
  uint64_t blocks = 0;     // of the new code
  uint64_t recovered = 0;  // blocks of the new code with counts of the old
  uint64_t inferred = 0;   // blocks with counts from their predecessors
  uint64_t dropped = 0;    // slots of the old profile that had counts and were not found again

  // "9 of 10 anchors matched (similarity 0.95), 17 of 20 blocks recovered, 3 inferred, 2 slots
  // dropped", or the same after the reason why it was not accepted.
  std::string text() const;
};

// Maps sites of the old code to sites of the new one.
struct SiteMap {
  std::vector<SiteId> blocks;      // by site - 1; 0 for none
  std::map<SiteId, SiteId> sites;  // of calls and probes
  std::map<SiteId, SiteId> loops;
};

// Aligns two bodies. O(anchors^2) time and memory, with at most kMaxAnchors each.
inline constexpr size_t kMaxAnchors = 2000;
SiteMap match_shapes(const CodeShape& there, const CodeShape& here, MatchReport& report);

// Returns the profile of the new code, with `schema` and the key of `old`, or one without counts if
// the report says that it is not accepted. `old` passes check().
MethodProfile match_profile(const MethodProfile& old, const CodeShape& there, const Schema& schema,
                            const CodeShape& here, MatchReport& report);

}  // namespace uptier::profile
