// upf/scan.h: finds the parts of a profile file, and continues after damage.
//
// A file may be cut off at any byte, and another file may follow. So a length is trusted only if it
// leads to the expected next chunk. If not, the scan goes back into the chunk that it has skipped:
// into a group, whose checksum is left to the reader of the group, and into a chunk in IREE's
// layout, which has none. It continues at our first record inside of it.
//
// Bytes that are scanned again are counted, because damage may be nested. Going back ends when they
// add up to 16 times the file. So time and memory are proportional to the size of the file.
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
