// lex.h: the tokens of IR text.
//
// A token is a view into the text, which must outlive it. Lines end instructions, so an end of line
// is a token of its own (several in a row, with comments between, are one). Any bytes are accepted:
// bytes that form no token become kBad.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace uptier::jit {

struct Token {
  enum class Kind : uint8_t {
    kEnd,
    kNewline,
    kWord,      // [A-Za-z_][A-Za-z0-9_]*
    kNumber,    // a digit, or '-' and a letter or digit, then more characters of numbers
    kName,      // @word or @"quoted"; text is without the @
    kLocation,  // @digits; text is without the @
    kPunct,     // one character, or ->
    kBad,
  };
  Kind kind = Kind::kEnd;
  std::string_view text;
  uint32_t line = 1;    // from 1
  uint32_t column = 1;  // from 1, in bytes

  bool is(Kind k, std::string_view t) const { return kind == k && text == t; }
};

// Splits a text into tokens; the last one is kEnd. `;` starts a comment that ends with the line.
std::vector<Token> lex(std::string_view text);

// Returns the name in a kName token: quotes and \xHH escapes resolved. Empty for a bad escape.
std::string unquote(std::string_view name);

}  // namespace uptier::jit
