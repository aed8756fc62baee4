// ValueVersions: the data about versions of a method made for values of its parameters.
//
//   optimized version in service --decide_value--> a body with the values as constants, and a guard
//   in front of it: the cell leads to the guard, hits continue to that body, misses to the general one
//
//   in service --> window: kWindow calls are counted, and their misses --decide_guard--> keep
//                    ^                                                         |        roll_back
//                    +-- so many misses later: kFirstLimit, twice as many --  quiet
//                        after each window that was kept
//
// Values inside the body need no version of their own: every optimized version is made with the
// guesses of decide_site, except for sites whose guards have failed too often (side_exits.h).
//
// So a guard that holds costs a comparison, and a guard that begins to fail is noticed after as
// many misses as its limit allows.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "jit/analysis/param_uses.h"
#include "jit/code/value_guard.h"
#include "uptier/profile.h"

namespace uptier::tiering {

// A probe of the host inside the body whose values the compiler may guess.
struct BodySite {
  SiteId site = 0;
  SlotKind kind = SlotKind::kValue;
  bool wide = false;
};

struct ValueVersions {
  static constexpr int32_t kWindow = 1024;
  static constexpr int32_t kFirstLimit = 256;
  static constexpr int32_t kMostLimit = 1 << 20;

  // The observed sites; constant once the shape is known.
  std::vector<jit::ParamSite> sites;
  std::vector<BodySite> body_sites;
  // Guarded by Runtime's state mutex.
  std::vector<jit::ParamValue> wanted;   // for the requested version
  std::vector<jit::ParamValue> refused;  // tried and taken back
  uint32_t retries = 0;
  bool banned = false;
  bool told = false;       // the log says that it is not tried any more
  bool forced = false;     // by a stress plan; once for each general version
  bool in_window = false;  // of the version in service
  int32_t limit = kFirstLimit;
  uint64_t missed = 0;  // misses of all versions, as far as reported
};

// The words of a guard (jit::GuardWords), in which compiled code counts.
inline int32_t exchange_word(int32_t& word, int32_t value) {
  return __atomic_exchange_n(&word, value, __ATOMIC_RELAXED);
}
inline int32_t load_word(const int32_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

}  // namespace uptier::tiering
