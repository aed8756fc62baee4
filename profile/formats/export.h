// export.h: profiles as the files of other tools. Text, a line for each thing seen; names that
// would break a format have its marks replaced by '_'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "uptier/profile.h"
#include "uptier/profile_calls.h"

namespace uptier::profile {

using uptier::CallProfile;
using uptier::Profile;

// A head and one row a site or table entry: module, function, method, kind, site, word, key_module,
// key, count, estimate. Blocks of inlined bodies have kind "inlined" and two rows each, of the root:
// the word is the call sites that lead there and "executions" or "samples", the key the body's
// method. Their other sites have kind "inlined_call_target" and so on and a row for each word, for
// "samples" and for each table entry, whose key is the entry's. Of calls there is a row of kind "call" for each pair, of the caller, with the callee in
// key_module and key and the estimated calls; and of first calls two of kind "first_call", with the
// sum of "positions" and the "runs" (thousandths). Of processor time there are rows of kind "time" for each
// method: "own_ns", "total_ns" and "samples"; the method of places that are none is "[host]" and the like.
// RFC 4180, for people and scripts; tsv.h has rows
// that can be read back.
std::string to_csv(const Profile& profile, const CallProfile& calls = {});

// What stands in for the source of a module: a line "method, block N" for each block of its methods.
struct LcovListing {
  std::string name;  // the module's key, in hexadecimal
  std::string text;
};

// Coverage for genhtml: a file "<folder>/<module key>" for each module, in which the blocks of its
// methods are lines, one after the other. What a method ran inside of others counts in its lines
// (profile/algebra/fold_inlined.h). `listings` (may be null) receives the text of these files, without
// which genhtml refuses the coverage.
std::string to_lcov(const Profile& profile, std::string_view folder = "uptier",
                    std::vector<LcovListing>* listings = nullptr);

// Stacks for flame graphs: "method;block_N executions". A body that is inlined stands on what it is
// inlined into, marked as flamegraph.pl knows inlined frames: "root;callee_[i];block_N executions".
std::string to_folded(const Profile& profile);
// Stacks with their processor time in microseconds: "outer;inner 1234". Host functions and the like are
// frames "[host]".
std::string to_folded(const TimeProfile& time, const Profile& names);

// The text form of llvm-profdata, of an IR level profile: a record a method with the estimates of
// its blocks, those inside of others included (profile/algebra/fold_inlined.h), as its own instrumentation counts
// them. Methods without blocks are left out; of equal names and hashes the second gets its number.
std::string to_llvm_text(const Profile& profile);

}  // namespace uptier::profile
