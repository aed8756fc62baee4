// random_times.h: random processor time by call path.
#pragma once

#include <cstdint>
#include <vector>

#include "uptier/profile_time.h"

namespace uptier::test {

// `below(n)` draws a number below n; `key()` draws a method. Each path has samples and time.
TimeProfile random_times(const auto& below, const auto& key) {
  TimeProfile time;
  time.asked_ns = below(uint64_t{1} << 40);
  time.squares = 1 + below(uint64_t{1} << 40);
  for (uint64_t n = 1 + below(6); n > 0; --n) {
    std::vector<PathFrame> path;
    for (uint64_t depth = below(5); depth > 0; --depth) path.push_back({TimePlace::kMethod, key()});
    const auto last = static_cast<TimePlace>(below(kTimePlaces));
    path.push_back({last, last == TimePlace::kMethod ? key() : MethodKey{}});
    time.add(path, 1 + below(9), 1 + below(uint64_t{1} << 40));
  }
  return time;
}

}  // namespace uptier::test
