// Registry: adds methods, and finds them.
//
//   Thread: any, without the state mutex.
#pragma once

#include <string>

#include "uptier/host.h"
#include "uptier/ids.h"
#include "uptier/result.h"

namespace uptier::tiering {

struct Engine;
class PlaceTaking;
class UnattachedCalls;

class Registry {
 public:
  // All outlive this.
  Registry(Engine& engine, UnattachedCalls& unattached_calls, PlaceTaking& place_taking)
      : engine_(engine), unattached_calls_(unattached_calls), place_taking_(place_taking) {}

  // See uptier/runtime.h.
  Result<MethodId> add_method(Host& host, MethodInfo info);
  std::string error_of(MethodId m) const;
  const void* entry_address(MethodId m) const;
  const void* entry_address(MethodId m, const Signature& expected) const;

 private:
  Engine& engine_;
  UnattachedCalls& unattached_calls_;
  PlaceTaking& place_taking_;
};

}  // namespace uptier::tiering
