// The slab that a thread's copies of optimized code count in. In front of what they count in are two
// words: how many words those are, and the number of the copy that they are for (Version::copy_number).
//
//   Thread: the owner's; others read the number of words, which a slab has for life.
#pragma once

#include <cassert>
#include <cstdint>

#include "sampler/slab_arena.h"

namespace uptier::tiering {

inline constexpr uint32_t kSlabHeadWords = 2;

inline uint64_t& slab_words(uint64_t* slab) noexcept { return slab[-2]; }
inline uint64_t& slab_copy(uint64_t* slab) noexcept { return slab[-1]; }

// The same of a slab that may not be there: 0.
inline uint64_t optimized_words(uint64_t* slab) noexcept {
  return slab == nullptr ? 0 : slab_words(slab);
}
inline uint64_t counted_copy(uint64_t* slab) noexcept {
  return slab == nullptr ? 0 : slab_copy(slab);
}

// Takes a slab of so many words, whose copy is to be said; null when it is refused.
inline uint64_t* take_optimized_slab(sampler::SlabArena& slabs, uint32_t words) noexcept {
  assert(words <= UINT32_MAX - kSlabHeadWords);
  uint64_t* taken = slabs.take(words + kSlabHeadWords);
  if (taken == nullptr) return nullptr;
  uint64_t* slab = taken + kSlabHeadWords;
  slab_words(slab) = words;
  return slab;
}

// Gives one back, of a method that is gone for good.
inline void give_optimized_slab(sampler::SlabArena& slabs, uint64_t* slab) noexcept {
  if (slab == nullptr) return;
  assert(slab_words(slab) <= UINT32_MAX - kSlabHeadWords);
  slabs.give(slab - kSlabHeadWords, static_cast<uint32_t>(slab_words(slab)) + kSlabHeadWords);
}

}  // namespace uptier::tiering
