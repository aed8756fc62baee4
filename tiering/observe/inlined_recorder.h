// InlinedRecorder: takes what instrumented copies of optimized code have counted of bodies that are
// inlined into them, for readers of profiles and traces; how it is laid out is in inlined_bodies.h.
//
// A thread's slot counts from 0 in each copy, and is read like any site. All threads and copies together
// come to
//
//     sum - what the thread's snapshot before held + what this one holds
//
// so a count that moves from a table's entry to `other` does so in the sum as well.
//
// The key of a table's entry is the address of a stub, which may have been another method's when the
// copy came into service: then it is nobody's (`other`), as far as that copy goes. Law: a method is
// never credited with another's calls. A copy that is made later begins with empty tables.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tiering/model/method.h"
#include "tiering/observe/method_directory.h"
#include "tiering/observe/trace_emitter.h"
#include "uptier/profile.h"

namespace uptier::tiering {

class InlinedRecorder {
 public:
  // Both outlive this.
  InlinedRecorder(const MethodDirectory& directory, TraceEmitter& trace)
      : directory_(directory), trace_(trace) {}

  // Adds `came`, new executions by word in the blocks of the bodies that are inlined into a method's
  // copy, in so many samples that the thread has just handed over, and what their slots hold now:
  // `counts` is the whole slab. Makes of `came` what a window has of all of these words.
  void take(Method& m, uint32_t thread, const Version& copy, std::span<const uint64_t> counts,
            std::vector<uint64_t>& came, uint64_t samples);
  // Returns the counts of bodies that are inlined into a method, if their methods are still there.
  InlinedBodies bodies_of(const Method& m) const;

 private:
  struct Step {  // of a slot, from one snapshot to the next
    InlinedSite before, now;
  };
  bool all_known(const jit::InlinePath& path) const;
  void note(Method& m, const InlinedSection& section, std::span<const uint64_t> came,
            uint64_t samples, uint64_t weight);
  InlinedStream& stream_of(Method& m, const InlinedSection& section, const Version& copy);
  void emit(Method& m, const jit::InlinePath& path, InlinedStream& s);
  std::vector<Step> take_slots(Method& m, uint32_t thread, const Version& copy,
                               std::span<const uint64_t> counts, uint64_t samples, uint64_t weight);
  InlinedSite read_slot(const Version& copy, const InlinedSlot& slot,
                        std::span<const uint64_t> counts) const;

  const MethodDirectory& directory_;
  TraceEmitter& trace_;
};

}  // namespace uptier::tiering
