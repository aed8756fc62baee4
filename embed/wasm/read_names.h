// read_names.h: function names from a module's "name" section, or its exports.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "embed/wasm/module_info.h"

namespace uptier::wasm {

// Returns a name as text for people: cut after 512 bytes, control characters and bytes that are not ASCII
// replaced by '?'.
std::string printable_name(std::span<const uint8_t> name);

// Reads the payload of a "name" section into `names`, by function, of `functions`. The section is a
// comment: what does not parse is left out, and never makes a module bad.
void read_function_names(std::span<const uint8_t> section, size_t functions,
                         std::unordered_map<uint32_t, std::string>& names);

// Notes the names of functions that have one: from the section, else from their first export. The
// exports are valid.
void name_functions(ModuleInfo& info, std::span<const uint8_t> section);

// Returns "func[3] <name>", or "func[3]" where it has none, of a module that may be read in part only:
// for messages.
std::string function_text(const ModuleInfo& info, uint32_t function);

}  // namespace uptier::wasm
