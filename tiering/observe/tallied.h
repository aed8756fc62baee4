// Tallied: what optimized code has counted of a method, in all its versions.
//
//   words of a version -> count -> shares -> executions of blocks, its own and those of inlined bodies
//
// Entries of a version that calls reach are counted by the method's stub: they are the calls from when
// it came into service until it left. A version for some values of the parameters counts its own, and
// the one that takes the other calls has the rest.
//
// What a version has counted is read from its words while it has code, and kept with the method when
// the code is freed.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>

#include "tiering/model/method.h"
#include "tiering/model/tally_words.h"

namespace uptier::tiering {

class Tallied {
 public:
  explicit Tallied(TallyWords& words) : words_(words) {}

  // Returns the sum of all versions that a method has and had.
  TalliedSum sum_of(const Method& m) const;
  // Notes how many calls there were so far when calls of a method may go elsewhere from now on. Where
  // memory for that is refused, the next time counts for both.
  void follow_calls(Method& m) noexcept;
  // The code of a version was freed: keeps what it has counted with its method, and gives its words
  // back. `m` is null if the method is gone.
  void keep(Method* m, Version& v);

  TallyWords& words() const { return words_; }

 private:
  void keep_counts(Method& m, const Version& v);
  double entries_of(const Method& m, const Version& v) const;
  void add(const Method& m, const Version& v, TalliedSum& to) const;

  TallyWords& words_;
};

}  // namespace uptier::tiering
