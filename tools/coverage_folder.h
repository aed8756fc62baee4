// coverage_folder.h: the coverage of many runs, in a directory.
//
//   MODULE-HASH.json   the sums of all runs of one module, as coverage_json
//   coverage.info      all of these files for genhtml, written again after each run
//
// Runs may end at the same time, in several processes: the directory is locked while files change, and a
// file is replaced as a whole, so no run is lost.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tools/coverage.h"

namespace uptier::tools {

// Returns whether `--coverage PATH` names a directory: one that is there, or a name that ends in '/'.
bool is_coverage_folder(const std::string& path);

// Adds a run of `module` (its path and its bytes) to the directory, which is made if it is missing.
// `missing` receives how many files coverage.info leaves out. Errors: those of reading and writing; a file
// that is there and that is none of ours, or counts something else, is not changed.
Status add_to_folder(const std::string& folder, const std::string& module,
                     std::span<const uint8_t> bytes, const Coverage& run, size_t& missing);

}  // namespace uptier::tools
