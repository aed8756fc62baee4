// MethodKeys: makes keys for methods without one, and counts methods that share a key.
//
// Profiles identify a method by its key (MethodInfo::key). Methods of equal key, name and body are
// one to them, as instances of a module are. If name or body differ, the counts of one are
// attributed to the other, or dropped. This is counted here, once for each method that gets a key
// that another one has.
//
//   Thread: the caller holds the state mutex; shared(): any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "tiering/base/state_lock.h"
#include "uptier/ids.h"
#include "uptier/profile.h"

namespace uptier::tiering {

struct Method;

class MethodKeys {
 public:
  // Returns a key for a method without one: from its name, and from the number of such methods of
  // that name so far. So a later process that adds the same methods makes the same keys.
  MethodKey make(std::string_view name);
  // A method with a key from make() was removed.
  void give_back(const MethodKey& key);

  // A method was added; `other` (or null) has the same key.
  void add(Method& m, const Method* other) UPTIER_REQUIRES(state_lock);
  // The body of a method has become known.
  void learn(Method& m) UPTIER_REQUIRES(state_lock);
  // No method has the key any more.
  void forget(const MethodKey& key) { bodies_.erase(key); }

  // Returns how many methods got a key that another one with a different name or body has.
  uint64_t shared() const { return shared_.load(std::memory_order_relaxed); }

 private:
  void count(Method& m) UPTIER_REQUIRES(state_lock);

  // For keys that were used more than once: the first known body, by its shape.
  std::map<MethodKey, std::optional<uint64_t>> bodies_;
  std::map<uint64_t, uint32_t> made_;  // by module key: the next function index
  std::atomic<uint64_t> shared_{0};
};

}  // namespace uptier::tiering
