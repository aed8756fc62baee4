// stack_time.h: where threads spent their processor time, by stack samples, as plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "uptier/ids.h"
#include "uptier/options.h"
#include "uptier/profile_time.h"

namespace uptier {

// The time spent in one method in one kind of code, without its callees. Inlined bodies are methods of their
// own, in the tier of the code that they are part of.
struct TimeRow {
  TimePlace place = TimePlace::kMethod;
  MethodId method;  // of a method, as the next two
  MethodKey key;
  std::string name;         // of other places "[host]" and the like
  Tier tier = Tier::kHost;  // kHost for its stub, and for other places
  Copy copy = Copy::kPlain;
  bool osr = false;      // code that was entered at a loop
  bool inlined = false;  // in the code of another method
  uint64_t samples = 0;
  double ns = 0;        // processor time
  ShareEstimate share;  // of TimeReport::sampled_ns
};

// One node of the tree of call paths. Nodes follow their parents.
struct TimeNode {
  uint32_t parent = 0;  // index of the parent; a root has its own index
  TimePlace place = TimePlace::kMethod;
  MethodId method;
  std::string name;
  uint64_t samples = 0;  // that ended here
  double ns = 0;
};

// Samples that name no method although guest code was under way, or whose stack is not complete, by
// reason.
struct TimeGap {
  std::string reason;
  uint64_t samples = 0;
  double ns = 0;
};

struct TimeReport {
  uint64_t hz = 0;                                 // samples per second of processor time; 0: off
  SampleEngine engine = SampleEngine::kTaskClock;  // of the last thread that was sampled
  double asked_ns = 0;    // thread time: processor time of threads while they were sampled
  double sampled_ns = 0;  // of that, the time that samples stand for
  double squares = 0;     // sum of the squares of the samples' weights, ns^2, for share_of_time
  uint64_t samples = 0;
  uint64_t dropped = 0;  // samples that found no room, and what they stood for
  double dropped_ns = 0;
  uint64_t stale = 0;  // frames whose code was not the one that ran: an error of the library
  double unattributed_ns = 0;  // guest code was under way, and no method could be named
  std::vector<TimeGap> gaps;
  std::vector<TimeRow> rows;    // most time first
  std::vector<TimeNode> nodes;  // the tree of call paths
  uint64_t paths_cut = 0;       // samples whose path was cut: too deep, or the tree was full

  // Returns the rows as a table for people, `shown` rows at most (0: all).
  std::string text(size_t shown = 30) const;
  // Returns the call paths in the form of flame graph tools: "outer;inner 1234" a line, in microseconds.
  std::string folded() const;
};

}  // namespace uptier
