// SavedMethod: the saved profile of one method, from earlier processes.
#pragma once

#include "uptier/profile.h"

namespace uptier::tiering {

struct SavedMethod {
  MethodProfile profile;
  MethodKey from;          // its key in the file
  double runs = 1;         // that it stands for
  bool recovered = false;  // it was found under the key of another module
  bool trusted = false;    // code was made from it alone
  bool drifted = false;    // it turned out not to match the current behavior

  // Says whether the profile can be trusted.
  bool holds() const { return !drifted; }
};

}  // namespace uptier::tiering
