// features.h: which feature of WebAssembly a module needs that the engine does not serve.
#pragma once

#include <cstdint>
#include <span>

namespace uptier::wasm {

// Returns the feature without which a module cannot be read past an offset, where reading it stopped,
// or null. For modules that were refused: reads them once for each feature. Instructions are told
// apart by feature_of.
const char* feature_needed(std::span<const uint8_t> module, uint64_t stopped);

}  // namespace uptier::wasm
