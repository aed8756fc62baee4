#include <algorithm>
#include <iterator>

#include "profile/base/numbers.h"
#include "uptier/profile_file.h"

namespace uptier {
namespace {

template <typename T>
void unite(std::vector<T>& into, const std::vector<T>& from) {
  std::vector<T> all;
  std::ranges::set_union(into, from, std::back_inserter(all));
  into = std::move(all);
}

// Returns whether it does not say how anything was sampled: it only names uploads, or not even
// these.
bool says_nothing(const ProfileInfo& i) {
  return i.engine.empty() && i.host.empty() && i.schedule.empty() && i.modules.empty() &&
         i.time == 0 && i.runs == 0 && i.weight == 0 && i.interval == 0;
}

}  // namespace

ProfileInfo& ProfileInfo::operator+=(const ProfileInfo& other) {
  const bool first = says_nothing(*this), second = says_nothing(other);
  engine = std::max(engine, other.engine);
  host = std::max(host, other.host);
  schedule = std::max(schedule, other.schedule);
  time = std::max(time, other.time);
  profile::add_saturating(runs, other.runs);
  profile::add_saturating(weight, other.weight);
  if (!first && !second && interval != other.interval) interval = 0;
  if (first) interval = other.interval;
  unite(modules, other.modules);
  unite(uploads, other.uploads);
  profile::add_saturating(forgotten, other.forgotten);
  if (uploads.size() > kMaxUploads) {
    const size_t over = uploads.size() - kMaxUploads;
    uploads.erase(uploads.begin(), uploads.begin() + static_cast<ptrdiff_t>(over));
    profile::add_saturating(forgotten, over);
  }
  return *this;
}

}  // namespace uptier
