#include "profile/base/wall.h"

#include <string>

namespace uptier {

Error out_of_memory(const char* what) noexcept {
  Error e{ErrorCode::kResourceExhausted, {}};
  try {
    e.message = std::string(what) + ": memory is refused";
  } catch (const std::exception&) {
    e.message = "out of memory";  // short enough to need no allocation
  }
  return e;
}

}  // namespace uptier
