// MethodKeys: the keys of methods that have none of their own, and what is lost where two share one.
//
// Profiles know a method by its key (MethodInfo::key). Those of one key, name and body are one to them,
// as instances of a module are. Where name or body differs, what one has counted is taken for the
// other's or dropped: that is counted here, once for each method that comes to a key which another has.
//
//   Thread: the caller holds the state mutex; shared(), any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "uptier/ids.h"
#include "uptier/profile.h"

namespace uptier::tiering {

struct Method;

class MethodKeys {
 public:
  // Returns a key for a method without one: of its name, and of how many such methods there are of
  // that name already, so that a later process which adds the same methods gives the same keys.
  MethodKey make(std::string_view name);
  // A method with a key that make() has made is in service no more.
  void give_back(const MethodKey& key);

  // A method has been added; `other` (or null) has the same key.
  void add(Method& m, const Method* other);
  // The body of a method is known.
  void learn(Method& m);
  // Nobody has the key any more.
  void forget(const MethodKey& key) { bodies_.erase(key); }

  // Returns how many methods came to a key that another one with another name or body has.
  uint64_t shared() const { return shared_.load(std::memory_order_relaxed); }

 private:
  void count(Method& m);

  // Of keys that were given more than once: the first body that is known, by its shape.
  std::map<MethodKey, std::optional<uint64_t>> bodies_;
  std::map<uint64_t, uint32_t> made_;  // by module key: the next function index
  std::atomic<uint64_t> shared_{0};
};

}  // namespace uptier::tiering
