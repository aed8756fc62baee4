// Tallied: the counts that optimized code has made of a method, in all its versions.
//
//   words of a version -> count -> shares -> executions of blocks, its own and those of inlined bodies
//
// Entries of a version that calls reach are counted by the method's stub: they are the calls while
// it was in service. A version for values of the parameters counts its own calls; the version for
// the other calls has the rest.
//
// The counts of a version are read from its words while it has code, and are stored with the method
// when the code is freed.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>

#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/model/tally_words.h"

namespace uptier::tiering {

class Tallied {
 public:
  explicit Tallied(TallyWords& words) : words_(words) {}

  // Returns the sum over all current and earlier versions of a method.
  TalliedSum sum_of(const Method& m) const UPTIER_REQUIRES(state_lock);
  // Records the number of calls so far, when calls of a method may go elsewhere from now on. If
  // there is no memory for that, the next record covers both periods.
  void follow_calls(Method& m) noexcept UPTIER_REQUIRES(state_lock);
  // The code of a version was freed: stores its counts with its method, and gives its words back.
  // `m` is null if the method is gone.
  void keep(Method* m, Version& v) UPTIER_REQUIRES(state_lock);

  TallyWords& words() const UPTIER_REQUIRES(state_lock) { return words_; }

 private:
  void keep_counts(Method& m, const Version& v) UPTIER_REQUIRES(state_lock);
  double entries_of(const Method& m, const Version& v) const UPTIER_REQUIRES(state_lock);
  void add(const Method& m, const Version& v, TalliedSum& to) const UPTIER_REQUIRES(state_lock);

  TallyWords& words_;
};

}  // namespace uptier::tiering
