// autofdo.h: a profile as LLVM's line-based sample profile, for the next build of the same sources.
//
//     function:total:head                    of a function: the sum of its lines, and its calls
//      OFFSET[.DISCRIMINATOR]: COUNT [CALLEE:COUNT ...]
//      OFFSET[.DISCRIMINATOR]: callee:total  a call that the compiler inlined, with its own lines below
//
// Offsets count lines from the function's declaration. A line counts as often as its most frequent
// block, as in LLVM's own tools, times the number of copies that the discriminator says the compiler
// made of it. Counts are estimates of executions; 0 means never. A function without executions is left
// out. Functions with one name are summed: the compiler would not tell them apart either.
//
// Read by llvm-profdata of LLVM 22, and by clang's -fprofile-sample-use.
#pragma once

#include <string>

#include "tools/module_lines.h"
#include "uptier/profile.h"

namespace uptier::tools {

// Counts the parts that were left out.
struct AutofdoLosses {
  uint64_t functions = 0;  // known ones that the debug sections do not describe
  uint64_t lines = 0;      // those before their function's declaration, or 65,536 and more after it
};

std::string to_autofdo(const Profile& profile, const ModuleLines& module, AutofdoLosses& losses);

}  // namespace uptier::tools
