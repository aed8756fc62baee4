// instantiate.h: makes an instance of a module: links its imports, allocates, fills the context, copies
// the segments, and calls the start function.
#pragma once

#include "embed/wasm/instance.h"

namespace uptier::wasm {

// See Store::instantiate.
Instantiation instantiate(Store& store, Module& module, const Linker& linker);

}  // namespace uptier::wasm
