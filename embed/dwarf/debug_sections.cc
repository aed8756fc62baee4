#include "embed/dwarf/debug_sections.h"

#include <cstdio>

namespace uptier::dwarf {

Error broken(std::string_view section, uint64_t at, std::string_view rule) {
  char place[32];
  std::snprintf(place, sizeof place, " at 0x%llx: ", static_cast<unsigned long long>(at));
  return {ErrorCode::kCorruptInput, std::string(section) + place + std::string(rule)};
}

Error too_large() {
  return {
      ErrorCode::kResourceExhausted,
      "the debug information takes more memory or work than its size allows (16 MiB and 16 bytes "
      "a byte); build the module with -g1, which has lines and no types"};
}

}  // namespace uptier::dwarf
