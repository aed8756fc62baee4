// upf/scan.h: finds the parts of a profile file, and where to go on after damage.
//
// A file may be cut off at any byte, and another file may follow. So a length is not believed before
// what it leads to is what comes next. Where it is not, the scan goes back into what it has jumped
// over: into a group, whose checksum is left to the reader of the group, and into a chunk in IREE's
// layout, which has none. It goes on at the first record of ours inside of it.
//
// Bytes that are scanned again are counted, because damage may be nested. When they come to 16 times
// the file, going back ends. So time and memory are proportional to the size of the file.
#pragma once

#include "profile/upf/segment.h"

namespace uptier::profile {

struct UpfParts {
  std::vector<UpfSegment> segments;
  // Traces (trace_file.h) between segments, each from its header to its end, or as far as it was
  // written.
  std::vector<ByteSpan> traces;
  uint64_t unknown = 0;  // chunks of an unknown type or version
  bool truncated = false;
};

UpfParts scan_upf(ByteSpan file, UpfWarnings& warnings);

}  // namespace uptier::profile
