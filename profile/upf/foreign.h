// upf/foreign.h: what other tools have left in a file, and how it comes through sums and saves.
#pragma once

#include <functional>

#include "profile/upf/read.h"

namespace uptier::profile {

using uptier::ForeignData;
using uptier::ForeignInstrument;
using uptier::ForeignTables;

// Adds what a segment holds of other tools, of instruments those that `wanted` says (all, if it is
// empty); not the ones that we have written for them. Texts are copied, and may all be one that is
// as long as the file: where they come to many times the bytes the rest is left out with a warning.
void add_foreign(UpfReader& file, const UpfReader::Segment& segment, ForeignTables& sum,
                 const std::function<bool(const Instrument&)>& wanted = {});

}  // namespace uptier::profile
