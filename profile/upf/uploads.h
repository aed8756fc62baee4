// upf/uploads.h: which of several uploads, or segments of a file, count in a sum.
//
// A run is in a sum once. Uploads name the runs that they sum up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/upf/read.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// What becomes of an upload when several are summed.
enum class UploadFate : uint8_t {
  kSummed,    // none of its runs is in the sum, or it names none
  kKnown,     // all of them are: it adds nothing
  kConflict,  // some are, so neither adding it nor leaving it out would be right
};

// Decides for each; those with more runs go first, of equal ones the first. A pure function.
std::vector<UploadFate> plan_uploads(std::span<const ProfileInfo* const> uploads);

// Returns the segments of a file that are summed, ascending. One that shares some runs with others
// is left out with a warning.
std::vector<size_t> summed_segments(UpfReader& file);

}  // namespace uptier::profile
