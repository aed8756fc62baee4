// llvm_text.h: reads the text form of llvm-profdata, of an IR level profile, as to_llvm_text
// (export.h) and `llvm-profdata merge -text` write it.
#pragma once

#include <string_view>

#include "uptier/profile.h"

namespace uptier::profile {

// LLVM uses bit 60 of a function's hash as "context sensitive", and puts such functions into
// another profile. So the text has hashes without this bit. If a hash has it, a comment before it
// holds the whole hash; llvm-profdata drops the comment.
inline constexpr uint64_t kLlvmHash = ~(uint64_t{1} << 60);
inline constexpr std::string_view kWholeHash = "# Whole Hash: ";

// Counters become the counts and estimates of blocks, function hashes the hashes of code. The first
// counter is also the number of calls and of observed calls: LLVM's code counts each. The text has
// no keys: a method gets the key of the method with its name and hash in `like` (may be null),
// otherwise module 0 and its position in the text, and is then known by its name. The hash is taken
// from `like`, otherwise from the comment, otherwise it lacks bit 60. Value profiles are skipped.
// Fails with "line N: rule". Memory is proportional to the text.
Result<Profile> profile_from_llvm_text(std::string_view text, const Profile* like = nullptr);

// Returns whether a text starts like an IR level profile.
bool looks_like_llvm_text(std::string_view text);

}  // namespace uptier::profile
