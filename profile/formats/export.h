// export.h: profiles as the files of other tools. Text, one line for each item; in names,
// characters that would break a format are replaced by '_'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "uptier/profile.h"
#include "uptier/profile_calls.h"

namespace uptier::profile {

using uptier::CallProfile;
using uptier::Profile;

// CSV, by RFC 4180: a header and one row for each word of a site or table entry: module, function,
// method, kind, site, word, key_module, key, count, estimate. For people and scripts; tsv.h has
// rows that can be read back.
//
// Blocks of inlined bodies have kind "inlined" and two rows each, which belong to the root: the
// word is the path of call sites and "executions" or "samples", the key is the body's method. Their
// other sites have kind "inlined_call_target" and so on, with a row for each word, for "samples"
// and for each table entry, whose key is the entry's. Calls have a row of kind "call" for each
// pair: it belongs to the caller, has the callee in key_module and key, and the estimated calls.
// First calls have two rows of kind "first_call", the sum of "positions" and the "runs"
// (thousandths). Processor time has rows of kind "time" for each method: "own_ns", "total_ns" and
// "samples"; places outside of methods have a method such as "[host]".
std::string to_csv(const Profile& profile, const CallProfile& calls = {});

// Replaces the source of a module: a line "method, block N" for each block of its methods.
struct LcovListing {
  std::string name;  // the module's key, in hexadecimal
  std::string text;
};

// Coverage for genhtml: a file "<folder>/<module key>" for each module, in which the blocks of its
// methods are consecutive lines. Executions of inlined bodies count in the lines of their method
// (profile/algebra/fold_inlined.h); a block that nobody knows (FoldedMethods::unknown) has no line of counts.
// `listings` (may be null) receives the text of these files; without them genhtml refuses the coverage.
std::string to_lcov(const Profile& profile, std::string_view folder = "uptier",
                    std::vector<LcovListing>* listings = nullptr);

// Stacks for flame graphs: "method;block_N executions". An inlined body is on the stack above its
// caller, with flamegraph.pl's mark for inlined frames: "root;callee_[i];block_N executions".
std::string to_folded(const Profile& profile);
// Stacks with their processor time in microseconds: "outer;inner 1234". Host functions and other
// places outside of methods are frames such as "[host]".
std::string to_folded(const TimeProfile& time, const Profile& names);

// The text form of llvm-profdata, of an IR level profile: a record for each method with the
// estimates of its blocks. Like LLVM's own instrumentation, it includes executions of inlined
// bodies (profile/algebra/fold_inlined.h). The form has a number for each block; that of a block that nobody
// knows is 1, since 0 means that it never runs. Methods without blocks are left out; if two have the
// same name and hash, the second name gets a number.
std::string to_llvm_text(const Profile& profile);

}  // namespace uptier::profile
