// add_shares: adds the counts of one version to a sum over versions.
//
// Each block of the version notes how often the version ran the exactly counted block beside it.
// Other versions may run the same counted block without this one: they call what this version has
// inlined. So a ratio between the two, as copies see it, holds for this version only.
//
//   Thread: any; no state.
#pragma once

#include <span>

#include "jit/code/tally_table.h"
#include "tiering/model/optimizing.h"

namespace uptier::tiering {

//   bodies   the path of each body in the table
//   counts   by word of the table: iterations or entries
void add_shares(const jit::TallyTable& table, std::span<const jit::InlinePath> bodies,
                std::span<const double> counts, TalliedSum& to);

}  // namespace uptier::tiering
