// text.h: small functions that the text forms share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "profile/data/schema.h"

namespace uptier::profile {

// Returns 0x and 16 hexadecimal digits.
std::string hex(uint64_t value);

// Returns the text in double quotes; quotes, backslashes and control characters are escaped as \",
// \\ and \xNN, all other bytes are unchanged.
std::string quote(std::string_view text);

// A spreadsheet reads a field that begins with = + - @, a tab or a carriage return as a formula. So
// such a text gets a ' in front, and a text with such a mark after one or more ' gets one more ';
// all others are unchanged. unguarded() restores each text.
std::string guarded(std::string_view text);
std::string_view unguarded(std::string_view text);

// Prints a slot's words, each after a blank: "5" for a kind with one count, otherwise with their
// names, "count 2 sum -3 min -5 max 2 other 0". Sums whose estimate differs also get that: "5 ~80".
// Both spans begin at the slot's first word; without estimates none are printed.
std::string words_text(SlotKind kind, const uint64_t* counts, const uint64_t* estimates);

}  // namespace uptier::profile
