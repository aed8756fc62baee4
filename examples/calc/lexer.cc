#include "lexer.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace calc {
namespace {

constexpr std::string_view kKeywords[] = {"let", "fn",   "if",    "else",    "while",  "for",
                                          "in",  "and",  "or",    "not",     "return", "break",
                                          "nil", "true", "false", "continue"};
constexpr std::string_view kSymbols[] = {"==", "!=", "<=", ">=", "..", "//", "<", ">",
                                         "=",  "+",  "-",  "*",  "/",  "%",  "(", ")",
                                         "[",  "]",  "{",  "}",  ",",  ".",  ":", ";"};

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string_view s, std::vector<Token>& out) : s_(s), out_(out) {}

  std::string run() {
    for (;;) {
      skip();
      if (at_ == s_.size()) break;
      std::string wrong = token();
      if (!wrong.empty()) return wrong;
    }
    add(Tok::kEnd, "");
    return {};
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < s_.size() ? s_[at_ + ahead] : '\0'; }

  void skip() {
    for (; at_ < s_.size(); ++at_) {
      if (peek() == '#') at_ = std::min(s_.find('\n', at_), s_.size() - 1);
      if (peek() == '\n') ++line_;
      if (!std::isspace(static_cast<unsigned char>(peek()))) return;
    }
  }

  std::string token() {
    if (is_digit(peek())) return number();
    if (peek() == '"') return string();
    if (is_name(peek())) return word();
    for (std::string_view symbol : kSymbols) {
      if (s_.substr(at_, symbol.size()) != symbol) continue;
      add(Tok::kSymbol, std::string(symbol));
      at_ += symbol.size();
      return {};
    }
    return "line " + std::to_string(line_) + ": '" + peek() + "' is no token";
  }

  std::string number() {
    size_t end = at_;
    auto digits = [&] {
      while (end < s_.size() && is_digit(s_[end])) ++end;
    };
    digits();
    // A point that is followed by another one is a range's.
    if (end + 1 < s_.size() && s_[end] == '.' && is_digit(s_[end + 1])) {
      ++end;
      digits();
    }
    if (end < s_.size() && s_[end] == 'e') {
      ++end;
      if (end < s_.size() && (s_[end] == '-' || s_[end] == '+')) ++end;
      digits();
    }
    std::string text(s_.substr(at_, end - at_));
    add(Tok::kNumber, text);
    out_.back().number = std::strtod(text.c_str(), nullptr);
    at_ = end;
    return {};
  }

  std::string string() {
    std::string text;
    for (++at_; peek() != '"'; ++at_) {
      if (at_ >= s_.size() || peek() == '\n') {
        return "line " + std::to_string(line_) + ": the string has no end";
      }
      bool escaped = peek() == '\\';
      at_ += escaped ? 1 : 0;
      text += escaped && peek() == 'n' ? '\n' : peek();
    }
    ++at_;
    add(Tok::kString, text);
    return {};
  }

  std::string word() {
    size_t end = at_;
    while (end < s_.size() && is_name(s_[end])) ++end;
    std::string text(s_.substr(at_, end - at_));
    bool keyword = std::ranges::find(kKeywords, text) != std::end(kKeywords);
    add(keyword ? Tok::kKeyword : Tok::kName, text);
    at_ = end;
    return {};
  }

  void add(Tok kind, std::string text) { out_.push_back({kind, std::move(text), 0, line_}); }

  std::string_view s_;
  std::vector<Token>& out_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::string tokenize(std::string_view source, std::vector<Token>& out) {
  return Lexer(source, out).run();
}

}  // namespace calc
