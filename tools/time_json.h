// time_json: the processor time of a profile's call paths, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "uptier/profile_file.h"

namespace uptier::tools {

// Returns "asked_ns", "sampled_ns", "squares_us2" and "paths": nested objects with the name and the key (or the
// place) of a frame, "samples" and "ns" of its own, "total_ns" with its callees, and "callees".
nlohmann::ordered_json time_json(const ProfileFile& file);

}  // namespace uptier::tools
