// read_names.h: function names from a module's "name" section.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace uptier::wasm {

// Reads the payload of a "name" section into `names`, which has one entry per function. The section
// is a comment: what does not parse is left out, and never makes a module bad.
void read_function_names(std::span<const uint8_t> section, std::span<std::string> names);

}  // namespace uptier::wasm
