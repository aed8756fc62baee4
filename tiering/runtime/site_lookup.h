// site_lookup: from an address to the place of the program that it is in.
//
//   pc -> code -> version of a method
//         row of the pc -> block, in which body -> the calls around that body
//
//   Thread: any. Takes the state mutex.
#pragma once

#include <optional>

#include "uptier/runtime.h"

namespace uptier::tiering {

struct Engine;

// See Runtime::site_at.
std::optional<CodePlace> find_site(const Engine& engine, const void* pc);

}  // namespace uptier::tiering
