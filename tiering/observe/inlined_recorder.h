// InlinedRecorder: records the counts of inlined bodies from instrumented copies of optimized code,
// for profiles and traces. inlined_bodies.h has the layout.
//
// A thread's slot counts from 0 in each copy, and is decoded as at any site. The sum over all
// threads and copies changes by
//
//     sum - contents in the thread's previous snapshot + contents in this one
//
// so a count that moves from a table's entry to `other` does so in the sum as well.
//
// The key of a table's entry is the address of a stub, which may have belonged to another method
// when the copy was installed. Then its counts go to `other`, for that copy. Law: a method is never
// credited with another method's calls. A copy that is made later begins with empty tables.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tiering/base/state_lock.h"
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

  // Adds `came`, the new executions by word in the inlined blocks of a method's copy, from so many
  // samples in the thread's last flush, and the contents of their slots: `counts` is the whole
  // slab, `root` the new executions of the root's blocks. Changes `came` to the window's counts for
  // all of these words.
  void take(Method& m, uint32_t thread, const Version& copy, std::span<const uint64_t> counts,
            std::span<const uint64_t> root, std::vector<uint64_t>& came, uint64_t samples)
      UPTIER_REQUIRES(state_lock);
  // Returns the counts of bodies inlined into a method, if their methods still exist.
  InlinedBodies bodies_of(const Method& m) const UPTIER_REQUIRES(state_lock);

 private:
  struct Step {  // of a slot, between two snapshots
    InlinedSite before, now;
  };
  bool all_known(const jit::InlinePath& path) const UPTIER_REQUIRES(state_lock);
  void note(Method& m, const InlinedSection& section, std::span<const uint64_t> came,
            std::span<const uint64_t> root, uint64_t samples, uint64_t weight)
      UPTIER_REQUIRES(state_lock);
  InlinedStream& stream_of(Method& m, const InlinedSection& section, const Version& copy)
      UPTIER_REQUIRES(state_lock);
  void emit(Method& m, const jit::InlinePath& path, InlinedStream& s) UPTIER_REQUIRES(state_lock);
  std::vector<Step> take_slots(Method& m, uint32_t thread, const Version& copy,
                               std::span<const uint64_t> counts, uint64_t samples, uint64_t weight)
      UPTIER_REQUIRES(state_lock);
  InlinedSite read_slot(const Version& copy, const InlinedSlot& slot,
                        std::span<const uint64_t> counts) const UPTIER_REQUIRES(state_lock);

  const MethodDirectory& directory_;
  TraceEmitter& trace_;
};

}  // namespace uptier::tiering
