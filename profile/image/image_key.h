// ImageKey: what code depends on besides the program. Code is used only where all of it is equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/base/bytes.h"

namespace uptier::profile {

struct ImageKey {
  Bytes build;          // the build id of the object that has the library in it
  Bytes processor;      // features of the processor
  uint64_t layout = 0;  // a hash of the structures that code knows
  std::string options;  // the options that change code, "name=value ..."

  friend bool operator==(const ImageKey&, const ImageKey&) = default;
};

// Returns why code of an image cannot run here, or "" if it can: the first part that differs.
std::string difference(const ImageKey& image, const ImageKey& here);

}  // namespace uptier::profile
