// read_names.h: function names from a module's "name" section, or its exports.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "embed/wasm/module_info.h"

namespace uptier::wasm {

// Reads the payload of a "name" section into `names`, which has one entry per function. The section
// is a comment: what does not parse is left out, and never makes a module bad.
void read_function_names(std::span<const uint8_t> section, std::span<std::string> names);

// Gives every function a name: from the section, else from its first export, else "func[N]". The
// exports are valid.
void name_functions(ModuleInfo& info, std::span<const uint8_t> section);

// Returns "func[3] <name>", or "func[3]" where it has none, of a module that may be read in part only:
// for messages.
std::string function_text(const ModuleInfo& info, uint32_t function);

}  // namespace uptier::wasm
