// inlined.h: what was observed of bodies where they are inlined into optimized code.
//
// Law: these executions are no calls of the method. Nobody counts it as called, and its profile
// (profile.h) holds none of them. They are observed when the instrumented copy of the root's code is,
// whose inlining may differ from that of the code it stands for, so that some of them may be in the
// method's own profile as well, as calls: the two are not to be added up.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "uptier/profile.h"

namespace uptier {

// One of the calls that lead to a body that was inlined.
struct InlinedCall {
  SiteId site = 0;   // of the call, in the body that calls
  MethodKey callee;  // whose body is there in its place

  friend bool operator==(const InlinedCall&, const InlinedCall&) = default;
};

struct InlinedProfile {
  MethodKey root;                 // whose code it is
  std::vector<InlinedCall> path;  // from the root inwards; not empty
  // Of the callee at the end of the path: its key and name, blocks that were counted (what has no
  // slot is unknown) and their counts. `calls` are those of the root, `sampled_calls` the ones of
  // them that ran a copy which counted this.
  MethodProfile profile;

  friend bool operator==(const InlinedProfile&, const InlinedProfile&) = default;
};

// Collects events as ProfileBuilder does, of inlined bodies only.
class InlinedBuilder {
 public:
  Status add(const TraceEvent& event);
  // Returns what was collected, by id: one for each place and set of blocks that was counted there.
  std::vector<InlinedProfile> profiles() const;

 private:
  struct Stream {
    InlinedProfile profile;
    FlushEvent pending;  // takes effect with its data
  };
  std::map<uint64_t, MethodDetails> details_;
  std::map<uint64_t, Stream> streams_;
};

// Reads what a trace file in memory holds of inlined bodies. Fails on corrupt input.
Result<std::vector<InlinedProfile>> inlined_from_trace(std::span<const std::byte> file);

// Prints what was observed of inlined bodies, as comments of a profile's text.
std::string to_text(std::span<const InlinedProfile> profiles, const Profile& names);

}  // namespace uptier
