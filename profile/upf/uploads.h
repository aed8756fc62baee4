// upf/uploads.h: decides which of several uploads, or segments of a file, count in a sum.
//
// A run is in a sum once. Uploads name the runs that they sum up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/upf/read.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// The fate of an upload when several are summed.
enum class UploadFate : uint8_t {
  kSummed,    // none of its runs is in the sum, or it names none
  kKnown,     // all of them are: it adds nothing
  kConflict,  // some are, so neither adding it nor leaving it out would be right
};

// Decides for each; uploads with more runs go first, among equal ones the first. A pure function.
std::vector<UploadFate> plan_uploads(std::span<const ProfileInfo* const> uploads);

// Returns the segments of a file that are summed, ascending. A segment that shares only some runs
// with others is left out with a warning.
std::vector<size_t> summed_segments(UpfReader& file);

}  // namespace uptier::profile
