#include "embed/wasm/vmctx.h"

#include "embed/wasm/module_info.h"

namespace uptier::wasm {

VmLayout::VmLayout(const ModuleInfo& info) {
  auto round_up = [](size_t n) {
    return (n + sizeof(FuncRef) - 1) / sizeof(FuncRef) * sizeof(FuncRef);
  };
  imports = static_cast<uint32_t>(round_up(sizeof(VmContext)));
  globals = imports + info.imported_functions * static_cast<uint32_t>(sizeof(FuncRef));
  size = static_cast<uint32_t>(round_up(globals + info.globals.size() * 8));
}

}  // namespace uptier::wasm
