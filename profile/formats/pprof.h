// pprof.h: a profile for `go tool pprof` and similar tools.
//
// Law: each number is in one sample only, so pprof's totals are ours. The location of a sample is a
// block ("method", line = block site) or a loop ("method loop N", inlined into "method", line =
// loop site). A block of an inlined body is inside of the bodies around it, each at the line of its
// call site. The values are
//
//   executions   of the block, estimated
//   calls        of the method; at its first block
//   samples      sampled calls and bursts; at the first block
//   cycles       of the loop without its inner loops, extrapolated as in loop_cycles; only if some
//                loop was timed
//   inlined      the executions in inlined bodies; only if there are any
//
//   cpu          processor time of a call path (nanoseconds), and `stacks`, the number of its
//                samples; only if stacks were sampled. These samples have whole stacks, at line 1
//                of each method
//
// With sources (PprofSources), the functions and lines are those of the sources: a block has the line of its
// first operation, a method the line where it begins, a call site that of the call, and inlined calls are lines
// of one location. Then there
// is one more value,
//
//   operations   executed operations of a line; in samples of their own, one a line of each block
//
// and `cpu` at the end of a path is divided among the method's lines in proportion to their operations.
//
// A value saturates at 2^63-1. The file of a method is "uptier/<module key>", as for lcov.
// Source: github.com/google/pprof/blob/main/proto/profile.proto.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "uptier/profile_file.h"
#include "uptier/profile_time.h"

namespace uptier::profile {

// A place in the sources, and the operations of a block that belong to it.
struct PprofPlace {
  std::string function;
  std::string file;
  uint64_t line = 0;
};
struct PprofPart {
  std::vector<PprofPlace> places;  // innermost first; one at least
  uint64_t operations = 0;
};

// Knows the lines of blocks.
class PprofSources {
 public:
  virtual ~PprofSources() = default;
  // Returns the parts of a block in the order of code; empty if it has no lines.
  virtual std::vector<PprofPart> parts(const MethodKey& method, SiteId block) const = 0;
  // Returns the place of a call, innermost first; empty if it has no line.
  virtual std::vector<PprofPlace> call(const MethodKey& method, SiteId site) const = 0;
  // Returns where a method begins; nothing if that is not known.
  virtual std::optional<PprofPlace> begin(const MethodKey& method) const = 0;
};

// Returns the message, not compressed: every reader accepts it, and `gzip` makes the usual file of
// it.
std::string to_pprof(const Profile& profile, const ProfileInfo& info, const TimeProfile& time = {},
                     const PprofSources* sources = nullptr);

}  // namespace uptier::profile
