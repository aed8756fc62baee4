// upf/foreign.h: data of other tools in a file, and how sums and saves preserve it.
#pragma once

#include <functional>

#include "profile/upf/read.h"

namespace uptier::profile {

using uptier::ForeignData;
using uptier::ForeignInstrument;
using uptier::ForeignTables;

// Adds the data of other tools in a segment, except instruments that we have written for them. Adds
// only the instruments for which `wanted` returns true (all, if it is empty). Texts are copied,
// and all may be the same text, as long as the file: if they add up to many times the bytes, the
// rest is left out with a warning.
void add_foreign(UpfReader& file, const UpfReader::Segment& segment, ForeignTables& sum,
                 const std::function<bool(const Instrument&)>& wanted = {});

// Returns whether merges add up payloads of this type and size; all others are kept as they are.
bool is_summed(std::string_view type, uint64_t payload);

}  // namespace uptier::profile
