// inlined.h: the arithmetic of InlinedBodies (uptier/profile.h), which the arithmetic of profiles uses.
//
// Laws, each with a test: add is associative and commutative; take_off undoes it if nothing
// saturated; and bodies that pass check still pass it afterwards.
#pragma once

#include "uptier/profile.h"

namespace uptier::profile {

using uptier::InlinedBlock;
using uptier::InlinedBodies;
using uptier::InlinedSite;

// The most calls that lead to a body. Compilers inline a few levels (jit/opt/inline_calls.cc), and
// exports repeat the path of a body many times.
inline constexpr size_t kMostInlinedCalls = 64;

// Adds `value` to `into`; returns how many numbers saturated at 2^64-1.
uint64_t add(InlinedBlock& into, const InlinedBlock& value);

// Adds the words of two sites of `kind`, both with the words of that kind; returns the same.
uint64_t add(SlotKind kind, InlinedSite& into, const InlinedSite& value);

// Subtracts the numbers that add has added, except least, greatest and gauges; returns how many
// numbers would have become negative.
uint64_t take_off(SlotKind kind, InlinedSite& from, const InlinedSite& what);

// Returns the site as the only site of a method; `top`: its table size in data.
MethodProfile as_method(SlotKind kind, SiteId site, const InlinedSite& s,
                        uint32_t top = Slot::kDefaultTop);

// As for merge.
void add(InlinedBodies& into, const InlinedBodies& from, MergeReport& report);
void add(InlinedBodies& into, InlinedBodies&& from, MergeReport& report);

// As for scale; the denominator is not 0. Returns how many numbers saturated.
uint64_t scale(InlinedBodies& bodies, uint64_t numerator, uint64_t denominator);

// As for subtract: only bodies of the same code, none below 0; blocks and bodies that become 0 are
// removed. Returns how many numbers would have become negative.
uint64_t take_off(InlinedBodies& from, const InlinedBodies& what);

// As for trim.
uint64_t trim(InlinedBodies& bodies, size_t entries);

}  // namespace uptier::profile
