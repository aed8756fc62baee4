// live_words: what goes through the socket, as text.
//
//   view     time\n
//   process  uptier-live 1 BYTES\n     the version of this form, and the length of what follows
//            process ID AGE HZ ASKED SAMPLED SQUARES SAMPLES DROPPED WAITING CODE\n
//            row PLACE METHOD MODULE INDEX TIER COPY OSR INLINED SAMPLES NS SERVES STATE NAME\n  ...
//   or       error TEXT\n              and the connection ends
//
// Numbers are decimal; enums are numbers. Law: what is read is checked, and a reader never asks for
// more memory than the bytes that arrived.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "uptier/live_time.h"

namespace uptier::tiering {

// The only request.
inline constexpr std::string_view kAskTime = "time\n";
// The longest answer that a view accepts.
inline constexpr uint64_t kMostAnswer = 64u << 20;

// Returns the whole answer.
std::string answer_of(const LiveTime& t);
// Returns the answer that refuses.
std::string refusal_of(std::string_view why);

// Reads the first line of an answer, without its newline. Returns the number of bytes that follow.
// Errors: kUnsupported (another version), kIo (a refusal, with its text), kCorruptInput.
Result<uint64_t> read_greeting(std::string_view line);
// Reads what follows. Errors: kCorruptInput.
Result<LiveTime> read_live_time(std::string_view text);

}  // namespace uptier::tiering
