// LoadedObjects: the executable and the libraries of this process, by their build ids.
//
// A build id is the linker's name for the exact content of an object. So a function of an object can
// be named by the id and its distance from the start, and another process finds it.
//
//   Thread: any; constant.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profile/base/bytes.h"

namespace uptier::tiering {

class LoadedObjects {
 public:
  struct Object {
    profile::Bytes build_id;  // empty: it has none
    uintptr_t base = 0;
    std::vector<std::pair<uintptr_t, uintptr_t>> code;  // executable ranges
  };

  // Reads those that are loaded now. Cost: some microseconds each.
  static LoadedObjects read();

  // Returns the object in whose code an address lies, or null.
  const Object* of(const void* address) const;
  // Returns the only object with a build id, or null.
  const Object* find(profile::ByteSpan build_id) const;
  // Returns the one with the library in it, or null.
  const Object* own() const;

 private:
  std::vector<Object> objects_;
};

}  // namespace uptier::tiering
