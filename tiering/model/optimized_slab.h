// The slab in which a thread's copies of optimized code count. Two words precede its counters: the
// number of those, and the number of the copy that they belong to (Version::copy_number).
//
//   Thread: the owner; others read the number of words, which never changes.
#pragma once

#include <cassert>
#include <cstdint>

#include "sampler/slab_arena.h"

namespace uptier::tiering {

inline constexpr uint32_t kSlabHeadWords = 2;

inline uint64_t& slab_words(uint64_t* slab) noexcept { return slab[-2]; }
inline uint64_t& slab_copy(uint64_t* slab) noexcept { return slab[-1]; }

// The same for a slab that may be null: 0.
inline uint64_t optimized_words(uint64_t* slab) noexcept {
  return slab == nullptr ? 0 : slab_words(slab);
}
inline uint64_t counted_copy(uint64_t* slab) noexcept {
  return slab == nullptr ? 0 : slab_copy(slab);
}

// Takes a slab of so many words; the caller sets its copy. Null if there is no memory.
inline uint64_t* take_optimized_slab(sampler::SlabArena& slabs, uint32_t words) noexcept {
  assert(words <= UINT32_MAX - kSlabHeadWords);
  uint64_t* taken = slabs.take(words + kSlabHeadWords);
  if (taken == nullptr) return nullptr;
  uint64_t* slab = taken + kSlabHeadWords;
  slab_words(slab) = words;
  return slab;
}

// Gives back a slab of a method that is removed for good.
inline void give_optimized_slab(sampler::SlabArena& slabs, uint64_t* slab) noexcept {
  if (slab == nullptr) return;
  assert(slab_words(slab) <= UINT32_MAX - kSlabHeadWords);
  slabs.give(slab - kSlabHeadWords, static_cast<uint32_t>(slab_words(slab)) + kSlabHeadWords);
}

}  // namespace uptier::tiering
