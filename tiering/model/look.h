// Look: a thread is looking at methods that it does not run, and began after so many removals
// (LookingAround, Places).
#pragma once

#include <cstdint>

namespace uptier::tiering {

struct ThreadLooks;

// Lies in the caller's frame, so that looking needs no memory.
struct Look {
  Look() = default;
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

  uint64_t since = 0;
  Look *before = nullptr, *after = nullptr;
  ThreadLooks* of_thread = nullptr;  // the counter of looks of an attached thread
};

// The looks of an attached thread. A trap may drop the frames with looks, because `build` may run
// guest code. So all looks of a thread count as one, the first, which is stored here and not in a
// frame. Thread: changed under the runtime's state mutex.
struct ThreadLooks {
  Look first;
  uint32_t depth = 0;
};

}  // namespace uptier::tiering
