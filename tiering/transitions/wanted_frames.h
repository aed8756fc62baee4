// What the worker waits for with frames of optimized code; see osr_out.cc and observe_loops.cc.
#pragma once

#include <cstdint>

namespace uptier::tiering {

struct Method;

// Newer code is to be made for a loop.
struct NewerWanted {
  Method* method;
  uint32_t loop;
  uint64_t due_ns;
  uint64_t osr_outs;  // frames that had moved when it was wanted
};

// Frames are to be asked to be observed.
struct WatchedFrames {
  Method* method;
  uint64_t due_ns;
};

}  // namespace uptier::tiering
