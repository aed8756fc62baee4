#include <string>

#include "embed/wasm/instance.h"

namespace uptier::wasm {

std::string TrapReport::text() const {
  std::string s = message;
  if (code == TrapCode::kExit) s += " with code " + std::to_string(detail);
  if (!has_location) return s;
  if (offset != 0) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    for (uint32_t v = offset; v != 0; v >>= 4) hex.insert(hex.begin(), kDigits[v & 15]);
    s += " at 0x" + hex;
  }
  s += " in func[" + std::to_string(function) + "]";
  // Without a name of its own a function is called func[N] already.
  if (!function_name.starts_with("func[")) s += " <" + function_name + ">";
  return s;
}

}  // namespace uptier::wasm
