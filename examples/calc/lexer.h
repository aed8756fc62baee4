// lexer.h: text to tokens. `#` begins a comment; lines end nothing by themselves, but a call's or
// an index's bracket stands on the line of what it belongs to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace calc {

enum class Tok : uint8_t { kEnd, kName, kNumber, kString, kSymbol };  // keywords are symbols

struct Token {
  Tok kind;
  std::string text;  // of a string: its value, escapes resolved
  int line;

  bool is(std::string_view s) const { return kind == Tok::kSymbol && text == s; }
};

// Appends the tokens of `source` and a kEnd to `out`. Returns what is wrong, or nothing.
std::string tokenize(std::string_view source, std::vector<Token>& out);

}  // namespace calc
