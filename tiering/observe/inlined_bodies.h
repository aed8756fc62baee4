// Inlined bodies, as the instrumented copy of optimized code counts them.
//
// Words are numbered as in the copy's slab: block site - 1 of the method's own blocks, then its tables
// of targets, then the sections of inlined bodies, and behind these their slots. In windows, and in
// what is compared with them, the words of a slot that has targets of a call stand for callees, as
// indirect_targets.h says; those of other slots are 0.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tiering/model/method.h"
#include "tiering/model/method_table.h"

namespace uptier::tiering {

// Returns where a copy's code counts inlined bodies.
std::vector<InlinedSection> sections_of(const jit::Code& code);
std::vector<InlinedSlot> slots_of(const jit::Code& code);
// Returns how many words a copy counts in, the method's own included.
uint32_t words_in(const Method& m, const Version& copy);
// Returns a method's copy of a number, or null.
const Version* copy_numbered(const Method& m, uint32_t number);

// Says of the words of sections and slots whether the copy counts them as a part of the distribution;
// `scope`: in this loop alone. `observed` has those of the method's own.
void observe_inlined(const Method& m, const Version& copy, std::vector<bool>& observed,
                     const jit::LoopScope* scope = nullptr);

// Returns what came on in the blocks of inlined bodies since the last snapshot that this thread has
// handed over, of a copy that counts any.
std::vector<uint64_t> inlined_since(Method& m, uint32_t thread, const Version& copy,
                                    std::span<const uint64_t> counts);

// The counts that a version was made from, by word of a copy.
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

// ---- Slots: inlined_slots.cc ------------------------------------------------------------

// Adds to a window of the blocks of inlined bodies what came on at a slot that has targets of a call.
// `own`: words in front of these blocks in the slab.
void add_slot_targets(Method& m, const Version& copy, const InlinedSlot& slot,
                      const InlinedSite& before, const InlinedSite& now, size_t own,
                      std::vector<uint64_t>& window);
// As add_made_targets, of the body's calls; returns the sum.
double add_made_slot(Method& m, const Version& v, const Version& copy, const InlinedSlot& slot,
                     const std::vector<double>& known, Origin& o);
// Returns what the windows of a copy hold of calls in inlined bodies that ran at all.
std::map<jit::InlinePath, TargetsBySite> seen_slot_targets(const Method& m, const Version& copy,
                                                           const CopyWindows& windows);
// Returns the slot that a word belongs to, or null.
const InlinedSlot* slot_at(const Version& copy, size_t word);
// Returns the name of a slot's word in the log.
std::string slot_target_name(const Method& m, const Version& copy, const InlinedSlot& slot,
                             size_t word);

// Returns what the log calls a word of a copy: a block, or the target of a call, and whose it is.
std::string block_name(const MethodTable& methods, const Method& m, const Version& copy,
                       size_t word);

}  // namespace uptier::tiering
