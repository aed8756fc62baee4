// What the instrumented copy of optimized code tells of the bodies that are inlined into it.
//
// Words are numbered as in the copy's slab: block site - 1 of the method's own blocks, and behind
// them the sections of inlined bodies.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tiering/method.h"

namespace uptier::tiering {

// Returns where a copy's code counts inlined bodies.
std::vector<InlinedSection> sections_of(const jit::Code& code);
// Returns how many words a copy counts in, the method's own included.
uint32_t words_in(const Method& m, const Version& copy);
// Returns a method's copy of a number, or null.
const Version* copy_numbered(const Method& m, uint32_t number);

// Returns what came on of inlined bodies since the last snapshot that this thread has handed over.
std::vector<uint64_t> inlined_since(Method& m, uint32_t thread, const Version& copy,
                                    std::span<const uint64_t> counts);

// What a version was made from, by word of a copy.
struct Origin {
  std::vector<double> counts;
  // What is known of both: the copy counts it, and the version has that body in the same place.
  // (The copy was made later, when other bodies may have been worth inlining.)
  std::vector<bool> known;
  // How far the shares may lie from the truth of their time. With p_k the shares inside of a body k
  // and w_k its part of all executions, the whole lies no farther than the method's own blocks, and
  // sum w_k d(p_k, its truth).
  double error = 1;
};
Origin origin_of(Method& m, const Version& v, const Version& copy, const CopyWindows& windows);

// Returns what the windows of a copy hold of each body that is inlined into it.
std::map<jit::InlinePath, jit::InlinedBlocks> seen_of_inlined(const Version& copy,
                                                              const CopyWindows& windows);

}  // namespace uptier::tiering
