// SeenRun: the data of this process up to now, for the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "profile/upf/gathered.h"
#include "profile/upf/timeline.h"
#include "uptier/profile.h"
#include "uptier/profile_file.h"

namespace uptier::tiering {

struct SeenRun {
  // The treatment of a method in a save.
  struct Fate {
    bool keep = false;  // trusted: this run counts as one more like those before
    uint64_t cfg_hash = 0;
  };

  Profile run;
  CallProfile calls;
  std::map<MethodKey, Fate> fates;
  ProfileInfo info;
  std::string log;
  profile::Timeline timeline;
  const profile::Gathered* data = nullptr;  // of data sources, written where it lies; or null
};

// Returns the estimated executions of a method's blocks.
double block_mass(const MethodProfile& p);

}  // namespace uptier::tiering
