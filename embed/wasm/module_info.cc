#include "embed/wasm/module_info.h"

#include "embed/wasm/rules.h"

namespace uptier::wasm {

void FreeRules::operator()(Rules* rules) const noexcept { delete rules; }

}  // namespace uptier::wasm
