// llvm_text.h: reads the text form of llvm-profdata, of an IR level profile, as to_llvm_text
// (export.h) and `llvm-profdata merge -text` write it.
#pragma once

#include <string_view>

#include "uptier/profile.h"

namespace uptier::profile {

// LLVM takes bit 60 of a function's hash for "context sensitive", and such functions for those of
// another profile. So the text has hashes without this bit, and where a hash has it, the whole hash is
// in a remark before, which llvm-profdata drops.
inline constexpr uint64_t kLlvmHash = ~(uint64_t{1} << 60);
inline constexpr std::string_view kWholeHash = "# Whole Hash: ";

// Counters become the counts and estimates of blocks, function hashes the hashes of code. The first
// counter is also the number of calls, and of those that were observed: LLVM's code counts each. The
// text has no keys: a method gets that of the method of its name and hash in `like` (may be null), or
// else module 0 and its place in the text, and is then known by its name. The hash is that of `like`,
// or else of the remark, or else lacks bit 60. Value profiles are passed over. Fails with "line N:
// rule". Memory is in proportion to the text.
Result<Profile> profile_from_llvm_text(std::string_view text, const Profile* like = nullptr);

// Returns whether a text starts like one of an IR level profile.
bool looks_like_llvm_text(std::string_view text);

}  // namespace uptier::profile
