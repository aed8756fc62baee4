// ParentSource: names the code that changed methods were made from, as data for the profile file.
//
// A method whose saved profile is of other code, but matches, has a parent: the hash of that code.
// Instruments of hosts and tools that are kept by the old hash are then found by the new one.
//
//   Thread: any, without the state mutex.
#pragma once

#include <string_view>

#include "uptier/gather.h"

namespace uptier::tiering {

struct Engine;

class ParentSource final : public DataSource {
 public:
  explicit ParentSource(const Engine& engine) : engine_(engine) {}

  std::string_view name() const noexcept override { return "changed methods"; }
  void gather(GatherList& list) noexcept override;

 private:
  const Engine& engine_;
};

}  // namespace uptier::tiering
