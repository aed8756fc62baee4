// Inlined bodies, as counted by the instrumented copy of optimized code.
//
// Words are numbered as in the copy's slab: block site - 1 of the method's own blocks, then its
// tables of targets, then the sections of inlined bodies, then their slots. In windows, and in data
// compared with windows, the words of a slot with call targets stand for callees (see
// indirect_targets.h); those of other slots are 0.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/model/method_table.h"

namespace uptier::tiering {

// Return the words in which a copy's code counts inlined bodies.
std::vector<InlinedSection> sections_of(const jit::Code& code) UPTIER_REQUIRES(state_lock);
std::vector<InlinedSlot> slots_of(const jit::Code& code) UPTIER_REQUIRES(state_lock);
// Returns the number of words that a copy counts in, including the method's own.
uint32_t words_in(const Method& m, const Version& copy) UPTIER_REQUIRES(state_lock);
// Returns the copy of a method with a given number, or null.
const Version* copy_numbered(const Method& m, uint32_t number) UPTIER_REQUIRES(state_lock);

// Sets in `observed`, for the words of sections and slots, whether the copy counts them as part of
// the distribution; `scope`: within this loop only. It already has the words of the method's own.
void observe_inlined(const Method& m, const Version& copy, std::vector<bool>& observed,
                     const jit::LoopScope* scope = nullptr) UPTIER_REQUIRES(state_lock);

// Returns the new counts in the blocks of inlined bodies since this thread's last snapshot, for a
// copy that counts any.
std::vector<uint64_t> inlined_since(Method& m, uint32_t thread, const Version& copy,
                                    std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);

// The counts that a version was made from, by word of a copy.
struct Origin {
  std::vector<double> counts;
  // The words with data on both sides: the copy counts the body, and the version has inlined it at
  // the same place. (The copy was made later, when other bodies may have been worth inlining.)
  std::vector<bool> known;
  // The bound on the distance of the shares from the truth of their time. With p_k the shares
  // inside of a body k and w_k its part of all executions, the whole is at most as far as the
  // method's own blocks plus sum w_k d(p_k, its truth).
  double error = 1;
};
Origin origin_of(Method& m, const Version& v, const Version& copy, const CopyWindows& windows)
    UPTIER_REQUIRES(state_lock);

// Returns the counts in a copy's windows of each body inlined into it.
std::map<jit::InlinePath, jit::InlinedBlocks> seen_of_inlined(const Version& copy,
                                                              const CopyWindows& windows)
    UPTIER_REQUIRES(state_lock);

// ---- Slots: inlined_slots.cc ------------------------------------------------------------

// Adds to a window of inlined blocks the new counts of a slot with call targets. `own`: the number
// of words before these blocks in the slab.
void add_slot_targets(Method& m, const Version& copy, const InlinedSlot& slot,
                      const InlinedSite& before, const InlinedSite& now, size_t own,
                      std::vector<uint64_t>& window) UPTIER_REQUIRES(state_lock);
// Like add_made_targets, for the body's calls; returns the sum.
double add_made_slot(Method& m, const Version& v, const Version& copy, const InlinedSlot& slot,
                     const std::vector<double>& known, Origin& o) UPTIER_REQUIRES(state_lock);
// Returns the counts in a copy's windows of calls in inlined bodies, for calls that ran at all.
std::map<jit::InlinePath, TargetsBySite> seen_slot_targets(const Method& m, const Version& copy,
                                                           const CopyWindows& windows)
    UPTIER_REQUIRES(state_lock);
// Returns the slot that contains a word, or null.
const InlinedSlot* slot_at(const Version& copy, size_t word) UPTIER_REQUIRES(state_lock);
// Returns the name of a slot's word in the log.
std::string slot_target_name(const Method& m, const Version& copy, const InlinedSlot& slot,
                             size_t word) UPTIER_REQUIRES(state_lock);

// Returns the name of a copy's word in the log: a block, or a call target, and the method it
// belongs to.
std::string block_name(const MethodTable& methods, const Method& m, const Version& copy,
                       size_t word) UPTIER_REQUIRES(state_lock);

}  // namespace uptier::tiering
