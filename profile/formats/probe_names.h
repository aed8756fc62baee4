// probe_names.h: what LLVM calls the methods of a profile whose counts belong to pseudo-probes.
//
// LLVM finds a function by the MD5 of its name (profile/base/md5.h), so no two methods have the
// same name. A name that several methods have is preceded by its module, as LLVM does it with the
// names of a file.
#pragma once

#include <map>
#include <string>

#include "uptier/profile.h"

namespace uptier::profile {

// Returns the names of all methods that a profile mentions, each once. A space and a character below
// it become '_', as does a '[', '#' or '!' at the beginning; a name that begins with a digit, which
// LLVM reads as a number, gets a '_' before it. A name of several methods becomes "<module key>:name",
// in angle brackets, with ":index" after it if that is not enough; so does the name of a method that
// the profile knows only by its key: "<module key>:function_index".
std::map<MethodKey, std::string> probe_names(const Profile& profile);

}  // namespace uptier::profile
