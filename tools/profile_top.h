// profile_top.h: the hottest methods of a profile as a table.
//
// If stacks were sampled, methods are ranked by their processor time, and places that are no method
// ("[host]") stand among them. Otherwise they are ranked by executions of blocks.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "uptier/profile_file.h"

namespace uptier::tools {

// Returns the name of a frame of a call path: the method's, or its key; "[host]" and the like.
std::string frame_name(const Profile& names, const PathFrame& f);

// Prints `n` rows, and what their marks mean.
void print_top(const ProfileFile& file, uint64_t n);
// The same as JSON: "methods".
nlohmann::ordered_json top_json(const ProfileFile& file, uint64_t n);

// Explains the mark "behind", if `any`.
void explain_behind(bool any);

}  // namespace uptier::tools
