// Tallied: what optimized code has counted of a method, in all its versions.
//
//   words of a version -> count -> shares -> executions of blocks, its own and those of inlined bodies
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
  // The code of a version was freed: keeps what it has counted, and gives its words back.
  void keep(Method& m, Version& v);

  TallyWords& words() const { return words_; }

 private:
  void add(const Version& v, TalliedSum& to) const;

  TallyWords& words_;
};

}  // namespace uptier::tiering
