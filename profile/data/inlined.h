// inlined.h: the arithmetic of InlinedBodies (uptier/profile.h), for that of profiles.
//
// Laws, each with a test: add is associative and commutative, take_off undoes it where nothing
// saturated, and what passes check does so afterwards.
#pragma once

#include "uptier/profile.h"

namespace uptier::profile {

using uptier::InlinedBlock;
using uptier::InlinedBodies;
using uptier::InlinedSite;

// Of calls that lead to a body. Compilers inline a few levels (jit/opt/inline_calls.cc); and what exports
// write of a body holds its path again and again.
inline constexpr size_t kMostInlinedCalls = 64;

// Adds `value` to `into`; returns how many numbers stopped at 2^64-1.
uint64_t add(InlinedBlock& into, const InlinedBlock& value);

// Adds the words of a site of `kind`, which both have been made for; returns the same.
uint64_t add(SlotKind kind, InlinedSite& into, const InlinedSite& value);

// Takes off what add has added, except least, greatest and gauges; returns how many numbers were
// not there to be taken.
uint64_t take_off(SlotKind kind, InlinedSite& from, const InlinedSite& what);

// Returns the site as that of a method that has no other; `top`: of its table in data.
MethodProfile as_method(SlotKind kind, SiteId site, const InlinedSite& s,
                        uint32_t top = Slot::kDefaultTop);

// As merge.
void add(InlinedBodies& into, const InlinedBodies& from, MergeReport& report);
void add(InlinedBodies& into, InlinedBodies&& from, MergeReport& report);

// As scale; the denominator is not 0. Returns how many numbers saturated.
uint64_t scale(InlinedBodies& bodies, uint64_t numerator, uint64_t denominator);

// As subtract: of bodies of one code, none below 0; blocks and bodies that become 0 go. Returns how
// many numbers were not there to be taken.
uint64_t take_off(InlinedBodies& from, const InlinedBodies& what);

// As trim.
uint64_t trim(InlinedBodies& bodies, size_t entries);

}  // namespace uptier::profile
