// MethodDirectory: finds the method of a key, an id or a code address.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/observe/method_keys.h"
#include "uptier/profile.h"

namespace uptier::tiering {

class MethodDirectory {
 public:
  // Sets the function from code addresses to methods; call it before the first snapshot.
  void set_method_at(MethodAt f) { method_at_ = std::move(f); }
  // Sets the function from ids to methods (null if the method is gone); call it before the first
  // snapshot.
  void set_method_of(std::function<Method*(MethodId)> f) { method_of_ = std::move(f); }

  // Adds a method, so that calls of it can be observed.
  void know(Method& m) UPTIER_REQUIRES(state_lock) {
    keys_.add(m, method_of(m.info.key));
    by_key_[m.info.key] = &m;
  }
  // Removes it for good.
  void forget(const Method& m) UPTIER_REQUIRES(state_lock) {
    auto at = by_key_.find(m.info.key);
    if (at == by_key_.end() || at->second != &m) return;
    keys_.forget(m.info.key);
    by_key_.erase(at);
  }

  MethodKeys& keys() { return keys_; }
  const MethodKeys& keys() const { return keys_; }
  // Returns the key of the method whose entry stub is at an address, if there is one.
  std::optional<MethodKey> method_at(uint64_t address) const UPTIER_REQUIRES(state_lock) {
    return method_at_(address);
  }
  const MethodAt& method_at() const UPTIER_REQUIRES(state_lock) { return method_at_; }
  // Returns the method of an id, or null.
  Method* method_of(MethodId m) const UPTIER_REQUIRES(state_lock) { return method_of_(m); }
  // Returns the method with a key, or null.
  Method* method_of(const MethodKey& key) const UPTIER_REQUIRES(state_lock) {
    auto at = by_key_.find(key);
    return at == by_key_.end() ? nullptr : at->second;
  }

 private:
  MethodAt method_at_;
  std::function<Method*(MethodId)> method_of_;
  std::map<MethodKey, Method*> by_key_;
  MethodKeys keys_;
};

}  // namespace uptier::tiering
