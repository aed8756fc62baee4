// lexer.h: text to tokens. `#` begins a comment; lines end nothing by themselves, but the bracket
// of a call or an index stands on the line where the expression before it ends.
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

// Appends the tokens of `source` and a kEnd to `out`. Returns an error message, or nothing.
std::string tokenize(std::string_view source, std::vector<Token>& out);

}  // namespace calc
