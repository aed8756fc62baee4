// upf/inlined.h: the chunks of a profile file that hold what was observed of inlined bodies.
//
// Each is a record with one packed part, whose head and methods are those of part.h:
//
//     inlined  head | bodies | bodies * {method root, calls, calls * {site, method}, (1 + calls) *
//              u64 cfg hash, blocks, blocks * {site, count, estimate, samples}}
//
//     inlined_sites  head | bodies | bodies * {method root, calls, calls * {site, method}, (1 + calls)
//              * u64 cfg hash, sites, sites * {kind, site, samples, words * count, words * estimate,
//              entries, entries * {u64 module key, key, count, estimate}}}
//
// with as many words as the kind has. A segment may have several of each, which add up; a body that
// has sites has its blocks in the one and these in the other. A reader that does not know a chunk skips
// it with a warning.
#pragma once

#include <vector>

#include "profile/upf/format.h"
#include "uptier/profile.h"

namespace uptier::profile {

using uptier::InlinedBodies;

// Returns the parts that hold the bodies, of kGroupBytes about unless a single one is larger. What
// breaks InlinedBody::check, or a record, is left out; `dropped` grows by its number.
std::vector<Bytes> inlined_parts(const InlinedBodies& bodies, uint64_t& dropped);

// The same of what the bodies have beside blocks.
std::vector<Bytes> inlined_site_parts(const InlinedBodies& bodies, uint64_t& dropped);

// Returns what a part holds; fails with the rule that is broken.
Result<InlinedBodies> read_inlined_part(ByteSpan part);
Result<InlinedBodies> read_inlined_site_part(ByteSpan part);

}  // namespace uptier::profile
