// read_names.h: function names from a module's "name" section.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

namespace uptier::wasm {

// Reads the payload of a "name" section into `names`, by function, of `functions`. The section is a
// comment: what does not parse is left out, and never makes a module bad.
void read_function_names(std::span<const uint8_t> section, size_t functions,
                         std::unordered_map<uint32_t, std::string>& names);

}  // namespace uptier::wasm
