// What becomes of the place of a method that was removed: its index, and by that its stub, its
// cell, its words in every thread's context.
//
//   in service --remove_methods--> removed --(nothing means it)--> free --add_method--> in service
//            \--retire_methods--> retired --(gone.cc)--> removed
//
// A removed method keeps its place, and the report and the profile keep what is known of it, until
// Options::removed_kept later ones have been removed or places have run out. From then on the place
// may go to a new method, as soon as nothing is left that could take the new one for the old:
//
//   what could                   why it does not
//   ---------------------------  ------------------------------------------------------------------
//   frames of its code           its versions are freed when none is left (reclaim.h)
//   frames that leave code of    its host is there until none is left, and told before (gone.cc);
//     a retired one for it         one that was removed has no such
//   threads that found it in     all have been quiescent since, or stand still and hold no address
//     service, in slow paths       of it (Reclaimer::leave)
//   code of other methods that   Version::refers_to names it; what is in service is withdrawn, as if
//     calls it, has its body in  it were evicted, and frames are called back; waited for until freed.
//     it, or compares its stub   What is compiled from then on calls Routines::gone() in its place
//   compilations that began      LookingAround: waited for. They may compare its stub already, so
//     before it was removed        what they make names it all the same (removed_meanwhile)
//   requests, notes, lists       taken out of queue, rings and lists when it is removed
//   threads' contexts            cleared, its slabs given back, when the place is given away
//   tables of call targets       what they hold of it is nobody's from then on: it is known how much
//                                that is, at most (observe/forgotten_targets.cc)
//   whoever keeps its id         the id carries a generation, so it is nobody's id any more
//   traces                       handles are Method::ordinal, which is not used again
//   log records, profiles        carry the whole id; keys of the host's
//
// What stays with the host is the address: whoever calls it gets the trap kNoCode while the place
// waits, and the new method from then on. What its stub leads to reads nothing of the method
// (RuntimeImpl::enter), which another thread may be putting away.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>

namespace uptier::tiering {

// While there are places that no method has had, they are looked for again after so many removals
// at least, or an eighth of all places, so that looking costs each removal a constant.
inline constexpr uint64_t kLeastRemovals = 32;

}  // namespace uptier::tiering
