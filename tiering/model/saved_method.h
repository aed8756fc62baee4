// SavedMethod: what earlier processes have left of one method.
#pragma once

#include "uptier/profile.h"

namespace uptier::tiering {

struct SavedMethod {
  MethodProfile profile;
  MethodKey from;          // under which the file has it
  double runs = 1;         // that it stands for
  bool recovered = false;  // it is that of a method of another module
  bool trusted = false;    // code was made from it alone
  bool drifted = false;    // and turned out not to be what happens now

  // Returns whether what is to come can be told from it.
  bool holds() const { return !drifted; }
};

}  // namespace uptier::tiering
