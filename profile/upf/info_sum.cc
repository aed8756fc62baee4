#include "profile/upf/info_sum.h"

#include <utility>

namespace uptier::profile {

void InfoSum::add(ProfileInfo info) {
  size_t level = 0;
  for (; level < levels_.size() && levels_[level]; ++level) {
    info += *levels_[level];
    levels_[level].reset();
  }
  if (level == levels_.size()) levels_.emplace_back();
  levels_[level] = std::move(info);
}

ProfileInfo InfoSum::total() const {
  ProfileInfo sum;
  for (const std::optional<ProfileInfo>& part : levels_) {
    if (part) sum += *part;
  }
  return sum;
}

}  // namespace uptier::profile
