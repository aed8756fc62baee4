// run_lines.h: source lines in the output of `uptier run`: coverage, and places of traps.
#pragma once

#include <string>

#include "embed/wasm/instance.h"
#include "embed/wasm/module.h"
#include "embed/wasm/module_bytes.h"
#include "uptier/runtime.h"

namespace uptier::tools {

// Checks before a run whether its coverage can be written. Errors: kNotFound: the module has no lines.
Status check_coverage(const std::string& path, const wasm::ModuleBytes& bytes);

// Writes the coverage of a run to `out`: a directory of many runs (coverage_folder.h), JSON if it ends in
// .json, else for lcov, without files that are not here. It says which lines ran, from Module::covered, or how often
// if code has `counted`, as instrumented code does. Returns the exit code of a program that ended with 0.
int write_coverage(Runtime& runtime, const std::string& path, const wasm::Module& module,
                   const std::string& out, bool counted);

// Returns the lines of a message that say where a trap came from: the place, the calls that were inlined there, and
// the calls of the guest's stack. Empty if the module has no lines; tells on stderr if its debug sections are
// refused.
std::string trap_lines(const std::string& path, const wasm::ModuleBytes& bytes,
                       const wasm::TrapReport& trap);

}  // namespace uptier::tools
