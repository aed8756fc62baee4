// probe_elf: code and its pseudo-probes as an ELF file, for llvm-profgen and llvm-bolt.
//
// An executable for x86-64 that nobody executes. Its sections of code lie at the addresses where the
// code ran; code that lies close together shares one, with int3 in the gaps. What lies around them, the
// runtime's own code for example, is not in the file: sections without contents stand for it. Each part
// has a symbol, the function's name; several parts of a function have the same.
#pragma once

#include <string>

#include "profile/formats/probed_code.h"

namespace uptier::profile {

std::string to_probe_elf(const ProbedFile& file);

}  // namespace uptier::profile
