// lexer.h: the words of the text form of profiles.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace uptier::profile {

struct Position {
  size_t line = 1;
  size_t column = 1;
};

// A word, a quoted text, or one of the braces. Empty at the end of the input.
struct Token {
  std::string_view text;
  Position at;
  bool quoted = false;  // `text` is then the text between the quotes

  bool is(std::string_view word) const { return !quoted && text == word; }
};

// Splits a text, which must outlive it, into tokens. Skips blanks, and comments from # to the end
// of the line. Never fails: a quoted text without end keeps its quote, so no rule accepts it.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}

  Token next();

 private:
  void skip_blanks();
  size_t quoted_size() const;
  void advance(size_t count);

  std::string_view rest_;
  Position at_;
};

// Returns the content of a quoted text, without escapes; nothing if an escape is invalid.
std::optional<std::string> unquote(std::string_view text);

}  // namespace uptier::profile
