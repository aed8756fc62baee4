// timeline.h: the history of a run, as a profile file keeps it: decisions, the code in service, the
// nesting of timed loops, and the costs of the run.
//
// A timeline belongs to one run. It is neither merged nor trusted: a file holds those of the last
// runs that wrote it, and nothing is decided by them. Times are nanoseconds since the runtime was
// created.
//
// The record (UpfKind::kTimeline) is packed; inside, little-endian:
//
//     u64 length of the run, left out, figures, methods, loops, versions, decisions
//     figures * {text name | u64 bits of a double}
//     methods * {u64 module key | u32 function index, loops | text name}
//     loops * {u32 method, site, parent's site (0: none), location (0: none)}
//     versions * {u32 method, tier | copy << 8 | u64 loop + 1 (0: none), in service, taken out
//                 (0: never), code bytes, compile ns, inlined}
//     decisions * {u64 at | u32 method | u32 0 | u64 calls, samples, iterations | texts verb,
//     reason}
//
// `method` is an index, from 0, in the methods of this record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/base/bytes.h"
#include "uptier/ids.h"
#include "uptier/profile.h"
#include "uptier/result.h"

namespace uptier::profile {

using uptier::MethodKey;

struct Timeline {
  struct Figure {
    std::string name;  // as in uptier/report.h, e.g. "compile_ns_total"
    double value = 0;
    friend bool operator==(const Figure&, const Figure&) = default;
  };
  struct Method {
    MethodKey key;
    std::string name;
    uint32_t loops = 0;  // loops of the code, timed or not; site loops + 1 is the body's
    friend bool operator==(const Method&, const Method&) = default;
  };
  struct Loop {
    uint32_t method = 0;
    SiteId site = 0;    // as in the method's schema
    SiteId parent = 0;  // the next timed loop outwards, 0: none
    uint32_t location = 0;
    friend bool operator==(const Loop&, const Loop&) = default;
  };
  struct Version {
    uint32_t method = 0;
    Tier tier = Tier::kHost;
    Copy copy = Copy::kPlain;
    uint64_t loop = 0;  // LoopId + 1 if it is entered at a loop, 0: at the start
    uint64_t from_ns = 0;
    uint64_t to_ns = 0;  // 0: it was in service to the end
    uint64_t code_bytes = 0;
    uint64_t compile_ns = 0;
    uint64_t inlined = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  struct Decision {
    uint64_t at_ns = 0;
    uint32_t method = 0;
    uint64_t calls = 0;
    uint64_t samples = 0;
    uint64_t iterations = 0;
    std::string verb;
    std::string reason;
    friend bool operator==(const Decision&, const Decision&) = default;
  };

  uint64_t length_ns = 0;
  uint64_t left_out = 0;  // decisions, versions and loops that did not fit
  std::vector<Figure> figures;
  std::vector<Method> methods;
  std::vector<Loop> loops;
  std::vector<Version> versions;
  std::vector<Decision> decisions;

  bool empty() const { return methods.empty() && figures.empty(); }
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

// The data of a run in a file in addition to its counts: parts of the file, packed (upf/format.h).
struct RunRecord {
  uint64_t time = 0;  // Unix time, seconds
  ByteSpan log;
  ByteSpan timeline;
};

// Keeps the latest runs, as many as a file keeps of the past (kPastRuns, kPastBytes), the oldest
// first; of equal times, the one that comes later in the file counts as later.
std::vector<RunRecord> latest_runs(std::vector<RunRecord> runs);

// Removes items that do not fit into a record, and counts them: first decisions to keep things as
// they are, then any decisions, the latest first; versions and loops beyond 2^17. A run with 20,000
// decisions keeps all.
void fit(Timeline& t);

// Returns the bytes inside of the packed record.
Bytes timeline_bytes(const Timeline& t);

// Fails with the broken rule: a list that does not fit, an invalid method or tier, bytes left over.
// Allocates a small multiple of the size of the bytes.
Result<Timeline> read_timeline(ByteSpan bytes);

}  // namespace uptier::profile
