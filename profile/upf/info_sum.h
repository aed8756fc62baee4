// upf/info_sum.h: adds up the infos of profile files about their runs.
#pragma once

#include <optional>
#include <vector>

#include "uptier/profile_file.h"

namespace uptier::profile {

// The sum of many infos, as by +=. Each is added log(n) times, so that n short lists are not merged
// with a growing one n times.
class InfoSum {
 public:
  void add(ProfileInfo info);
  ProfileInfo total() const;

 private:
  std::vector<std::optional<ProfileInfo>> levels_;  // of 2^level infos each
};

}  // namespace uptier::profile
