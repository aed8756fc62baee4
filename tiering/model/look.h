// Look: a thread looks at methods that it does not run, since so many removals (LookingAround, Places).
#pragma once

#include <cstdint>

namespace uptier::tiering {

struct ThreadLooks;

// It lies in the caller's frame, so that looking needs no memory.
struct Look {
  Look() = default;
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

  uint64_t since = 0;
  Look *before = nullptr, *after = nullptr;
  ThreadLooks* of_thread = nullptr;  // where the looks of an attached thread are counted
};

// The looks of an attached thread. A trap may drop the frames that look: `build` may run guest code. So
// all of them count as one look, the first, which lies here and not in the frames.
// Thread: what changes it, under the runtime's state mutex.
struct ThreadLooks {
  Look first;
  uint32_t depth = 0;
};

}  // namespace uptier::tiering
