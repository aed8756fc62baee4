#include "lexer.h"

#include <algorithm>
#include <cctype>

namespace calc {
namespace {

constexpr std::string_view kKeywords[] = {"let", "fn",   "if",    "else",    "while",  "for",
                                          "in",  "and",  "or",    "not",     "return", "break",
                                          "nil", "true", "false", "continue"};
constexpr std::string_view kSymbols[] = {"==", "!=", "<=", ">=", "..", "//", "<", ">",
                                         "=",  "+",  "-",  "*",  "/",  "%",  "(", ")",
                                         "[",  "]",  "{",  "}",  ",",  ".",  ":", ";"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Returns the length of the number that a text begins with. A point that is followed by another
// one is a range's.
size_t number_length(std::string_view s) {
  size_t end = 0;
  auto at = [&](size_t i) { return i < s.size() ? s[i] : '\0'; };
  auto digits = [&] {
    while (is_digit(at(end))) ++end;
  };
  digits();
  if (at(end) == '.' && is_digit(at(end + 1))) ++end, digits();
  if (at(end) != 'e') return end;
  end += at(end + 1) == '-' || at(end + 1) == '+' ? 2 : 1;
  digits();
  return end;
}

// Reads a string after its first quote, and removes it from `s`. Returns whether the string has an
// end.
bool read_string(std::string_view& s, std::string& text) {
  while (!s.empty() && s[0] != '"' && s[0] != '\n') {
    bool escaped = s[0] == '\\' && s.size() > 1;
    if (escaped) s.remove_prefix(1);
    text += escaped && s[0] == 'n' ? '\n' : s[0];
    s.remove_prefix(1);
  }
  bool ends = s.starts_with('"');
  if (ends) s.remove_prefix(1);
  return ends;
}

}  // namespace

std::string tokenize(std::string_view s, std::vector<Token>& out) {
  int line = 1;
  auto take = [&](Tok kind, size_t length) {
    out.push_back({kind, std::string(s.substr(0, length)), line});
    s.remove_prefix(length);
  };
  while (!s.empty()) {
    char c = s[0];
    auto symbol = std::ranges::find_if(kSymbols, [&](auto t) { return s.starts_with(t); });
    if (c == '#') {
      s.remove_prefix(std::min(s.find('\n'), s.size()));
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      line += c == '\n' ? 1 : 0;
      s.remove_prefix(1);
    } else if (is_digit(c)) {
      take(Tok::kNumber, number_length(s));
    } else if (is_name(c)) {
      auto end = std::ranges::find_if_not(s, is_name);
      take(Tok::kName, static_cast<size_t>(end - s.begin()));
      if (std::ranges::find(kKeywords, out.back().text) != std::end(kKeywords)) {
        out.back().kind = Tok::kSymbol;
      }
    } else if (c == '"') {
      out.push_back({Tok::kString, "", line});
      s.remove_prefix(1);
      if (!read_string(s, out.back().text)) {
        return "line " + std::to_string(line) + ": the string has no end";
      }
    } else if (symbol != std::end(kSymbols)) {
      take(Tok::kSymbol, symbol->size());
    } else {
      return "line " + std::to_string(line) + ": '" + c + "' is no token";
    }
  }
  take(Tok::kEnd, 0);
  return {};
}

}  // namespace calc
