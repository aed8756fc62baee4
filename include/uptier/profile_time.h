// profile_time.h: where the runs of a profile spent their processor time, by call path.
//
// It comes from stack samples (Options::sample_hz). Times are processor time in nanoseconds, over all
// threads. Rule: a sum is associative and commutative, and saturates.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "uptier/profile.h"

namespace uptier {

// The kinds of places that time goes to: methods, and four others. kRuntime: the library, on behalf of guest
// code (slow paths, exits, probes). kHost: host functions that guest code called. kCompiling: the
// thread describes or compiles a method, or is between begin_blocked() and end_blocked(). kOutside: host
// code that no guest code called.
enum class TimePlace : uint8_t { kMethod, kRuntime, kHost, kCompiling, kOutside };
inline constexpr uint32_t kTimePlaces = 5;
// Returns "method", "runtime", "host", "compiling" or "outside".
const char* time_place_name(TimePlace p);

// A share of a whole, and the interval that contains the true share with a probability of 95 % (Wilson).
// Samples that the kernel delivered together count as one.
struct ShareEstimate {
  double share = 0;
  double low = 0;
  double high = 1;
};

// Returns the share `part / whole` of a time that was sampled with `squares`, the sum of the
// squares of the samples' weights. All three have one unit: TimeProfile::squares and
// LiveTime::squares are in us^2, so pass microseconds with them; TimeReport::squares is in ns^2. 0
// to 1 if nothing was sampled.
ShareEstimate share_of_time(double part, double whole, double squares);

// One element of a call path.
struct PathFrame {
  TimePlace place = TimePlace::kMethod;
  MethodKey method;  // all 0 for the other places

  friend bool operator==(const PathFrame&, const PathFrame&) = default;
  friend auto operator<=>(const PathFrame&, const PathFrame&) = default;
};

// A call path, and the paths that go on from it. Inlined bodies are frames like any other.
struct PathTime {
  PathFrame frame;
  uint64_t samples = 0;           // that ended here
  uint64_t ns = 0;                // the time that they stand for
  std::vector<PathTime> callees;  // ascending by frame

  // Returns the path that goes on with this frame; it is added if it is missing. Valid until the next
  // call. O(log callees), and O(callees) to add one.
  PathTime& callee(const PathFrame& f);

  friend bool operator==(const PathTime&, const PathTime&) = default;
};

// The time of one method or place.
struct FrameTime {
  uint64_t samples = 0;  // in the frame itself
  uint64_t own_ns = 0;   // likewise
  uint64_t all_ns = 0;   // with all that it called; recursive calls count once
};

struct TimeProfile {
  // Frames of a path, at most; deeper paths of a file are refused.
  static constexpr uint32_t kMostFrames = 1024;

  PathTime root;            // of no frame: the callees are the outermost frames
  uint64_t asked_ns = 0;    // processor time of the threads while they were sampled
  uint64_t sampled_ns = 0;  // of that, the time that samples stand for: the sum over all paths
  uint64_t squares = 0;     // sum of the squares of the samples' weights, in microseconds^2

  bool empty() const { return sampled_ns == 0 && root.callees.empty(); }

  // Adds samples that stand for `ns` at a path, outermost frame first. The caller updates asked_ns
  // and squares.
  void add(const std::vector<PathFrame>& path, uint64_t samples, uint64_t ns);

  TimeProfile& operator+=(const TimeProfile& other);
  // Multiplies all numbers (`squares` by the square of the factor), rounding towards 0; paths that
  // become empty are removed.
  void scale(uint64_t numerator, uint64_t denominator);
  // Takes off what `what` has, down to 0. Returns how many numbers were too small.
  uint64_t subtract(const TimeProfile& what);

  // Returns the time by frame. O(paths * depth).
  std::map<PathFrame, FrameTime> by_frame() const;
  // Returns the share of a part of sampled_ns.
  ShareEstimate share(uint64_t ns) const;

  friend bool operator==(const TimeProfile&, const TimeProfile&) = default;
};

}  // namespace uptier
