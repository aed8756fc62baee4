#include "profile/formats/lexer.h"

#include <algorithm>

#include "profile/base/numbers.h"

namespace uptier::profile {
namespace {

bool is_brace(char c) { return c == '{' || c == '}'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool ends_word(char c) { return is_blank(c) || is_brace(c) || c == '#' || c == '"'; }

}  // namespace

Token Lexer::next() {
  skip_blanks();
  Token token;
  token.at = at_;
  if (rest_.empty()) return token;
  size_t size = 1;
  if (rest_[0] == '"') {
    size = quoted_size();
    token.quoted = size < rest_.size() && rest_[size] == '"';
    // A quoted text without end keeps its quote, so no rule accepts it.
    token.text = token.quoted ? rest_.substr(1, size - 1) : rest_.substr(0, size);
    if (token.quoted) ++size;
  } else if (!is_brace(rest_[0])) {
    while (size < rest_.size() && !ends_word(rest_[size])) ++size;
    token.text = rest_.substr(0, size);
  } else {
    token.text = rest_.substr(0, size);
  }
  advance(size);
  return token;
}

void Lexer::skip_blanks() {
  while (!rest_.empty()) {
    if (rest_[0] == '#')
      advance(std::min(rest_.find('\n'), rest_.size()));
    else if (is_blank(rest_[0]))
      advance(1);
    else
      return;
  }
}

// Returns the size of the opening quote and the text, up to the closing quote or the end of the
// line.
size_t Lexer::quoted_size() const {
  size_t size = 1;
  while (size < rest_.size() && rest_[size] != '"' && rest_[size] != '\n') {
    size += rest_[size] == '\\' ? 2 : 1;
  }
  return std::min(size, rest_.size());
}

void Lexer::advance(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    ++at_.column;
    if (rest_[i] == '\n') at_ = {at_.line + 1, 1};
  }
  rest_.remove_prefix(count);
}

std::optional<std::string> unquote(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char escape = i + 1 < text.size() ? text[i + 1] : '\0';
    if (escape == '"' || escape == '\\') {
      out += escape;
      i += 1;
      continue;
    }
    if (escape != 'x' || i + 3 >= text.size()) return std::nullopt;
    const auto value = parse_unsigned("0x" + std::string(text.substr(i + 2, 2)));
    if (!value) return std::nullopt;
    out += static_cast<char>(*value);
    i += 3;
  }
  return out;
}

}  // namespace uptier::profile
