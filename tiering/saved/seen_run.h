// SeenRun: what this process has seen up to now, for the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "profile/upf/timeline.h"
#include "uptier/profile.h"
#include "uptier/profile_file.h"

namespace uptier::tiering {

struct SeenRun {
  // What a save has to know of a method.
  struct Fate {
    bool keep = false;  // taken on trust: this run is one more that was like those before
    uint64_t cfg_hash = 0;
  };

  Profile run;
  CallProfile calls;
  std::map<MethodKey, Fate> fates;
  ProfileInfo info;
  std::string log;
  profile::Timeline timeline;
};

// Returns the estimated executions of a method's blocks.
double block_mass(const MethodProfile& p);

}  // namespace uptier::tiering
