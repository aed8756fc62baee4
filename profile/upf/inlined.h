// upf/inlined.h: the chunks of a profile file with observations of inlined bodies.
//
// Each is a record with one packed part; part.h defines its head and methods:
//
//     inlined  head | bodies | bodies * {method root, calls, calls * {site, method}, (1 + calls) *
//              u64 cfg hash, blocks, blocks * {site, count, estimate, samples}}
//
//     inlined_sites  head | bodies | bodies * {method root, calls, calls * {site, method}, (1 + calls)
//              * u64 cfg hash, sites, sites * {kind, site, samples, words * count, words * estimate,
//              entries, entries * {u64 module key, key, count, estimate}}}
//
// with the number of words of the kind. A segment may have several of each, which add up; a body
// with sites has its blocks in the first chunk and its sites in the second. A reader that does not
// know a chunk skips it with a warning.
#pragma once

#include <vector>

#include "profile/upf/format.h"
#include "uptier/profile.h"

namespace uptier::profile {

using uptier::InlinedBodies;

// Returns the parts for the bodies, each about kGroupBytes unless a single body is larger. Bodies
// that fail InlinedBody::check, or do not fit into a record, are left out; `dropped` grows by their
// number.
std::vector<Bytes> inlined_parts(const InlinedBodies& bodies, uint64_t& dropped);

// The same for the bodies' sites other than blocks.
std::vector<Bytes> inlined_site_parts(const InlinedBodies& bodies, uint64_t& dropped);

// Returns the bodies of a part; fails with the broken rule.
Result<InlinedBodies> read_inlined_part(ByteSpan part);
Result<InlinedBodies> read_inlined_site_part(ByteSpan part);

}  // namespace uptier::profile
