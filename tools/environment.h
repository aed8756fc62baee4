// environment.h: variables that look as if they were to set an option, and set none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace uptier::tools {

// Returns the names of all options of the runtime, as `-O` takes them.
std::vector<std::string> option_names();

// Returns the option's name in capitals that a variable's name without UPTIER_ comes close to: by at
// most two letters that are wrong, missing, too many or swapped with their neighbour, of a name of
// three letters by one. Empty if there is none, or if it is an option's name.
std::string nearest_option(std::string_view name);

// Returns what there is to say of such variables of the process, a line each, in their order.
std::vector<std::string> doubtful_variables();

}  // namespace uptier::tools
