#include "jit/frontend/lex.h"

namespace uptier::jit {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    do {
      skip_blanks();
      Token t = next();
      bool repeats = t.kind == Token::Kind::kNewline && !tokens.empty() &&
                     tokens.back().kind == Token::Kind::kNewline;
      if (!repeats) tokens.push_back(t);
    } while (tokens.back().kind != Token::Kind::kEnd);
    return tokens;
  }

 private:
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  void skip_blanks() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == ';') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }

  Token take(Token::Kind kind, size_t end, size_t skip = 0) {
    Token t{kind, text_.substr(at_ + skip, end - at_ - skip), line_,
            static_cast<uint32_t>(at_ - line_start_ + 1)};
    at_ = end;
    return t;
  }

  Token next() {
    if (at_ == text_.size()) return take(Token::Kind::kEnd, at_);
    char c = text_[at_];
    if (c == '\n') {
      Token t = take(Token::Kind::kNewline, at_ + 1);
      ++line_;
      line_start_ = at_;
      return t;
    }
    if (is_letter(c)) return take(Token::Kind::kWord, run_of(at_, is_word));
    if (is_digit(c) || (c == '-' && is_word(at(at_ + 1)))) {
      return take(Token::Kind::kNumber, end_of_number());
    }
    if (c == '@') return at_sign();
    if (c == '-' && at(at_ + 1) == '>') return take(Token::Kind::kPunct, at_ + 2);
    bool known = std::string_view("()[]{},:.=+#").find(c) != std::string_view::npos;
    return take(known ? Token::Kind::kPunct : Token::Kind::kBad, at_ + 1);
  }

  template <typename Pred>
  size_t run_of(size_t from, Pred pred) const {
    while (from < text_.size() && pred(text_[from])) ++from;
    return from;
  }

  // A sign belongs to the number after an exponent's letter: e in decimals, p in hex. A dot belongs
  // to it if a digit follows.
  size_t end_of_number() const {
    size_t i = at_ + 1;
    bool hex = false;
    for (; i < text_.size(); ++i) {
      char c = text_[i], before = text_[i - 1];
      hex |= (c == 'x' || c == 'X') && before == '0';
      bool exponent = hex ? (before | 32) == 'p' : (before | 32) == 'e';
      bool dot = c == '.' && is_word(at(i + 1));
      if (is_word(c) || dot || ((c == '-' || c == '+') && exponent)) continue;
      break;
    }
    return i;
  }

  Token at_sign() {
    char c = at(at_ + 1);
    if (is_digit(c)) return take(Token::Kind::kLocation, run_of(at_ + 1, is_digit), 1);
    if (c == '"') return quoted();
    auto in_name = [](char n) { return is_word(n) || n == '.' || n == '$'; };
    size_t end = run_of(at_ + 1, in_name);
    // `@f.(i32)` is the name f and a signature: a name does not end in a dot.
    while (end > at_ + 1 && text_[end - 1] == '.') --end;
    return take(end == at_ + 1 ? Token::Kind::kBad : Token::Kind::kName, end, 1);
  }

  Token quoted() {
    size_t i = at_ + 2;
    while (i < text_.size() && text_[i] != '"' && text_[i] != '\n') i += text_[i] == '\\' ? 2 : 1;
    if (at(i) != '"') return take(Token::Kind::kBad, i < text_.size() ? i : text_.size());
    return take(Token::Kind::kName, i + 1, 1);
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  uint32_t line_ = 1;
};

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  char low = static_cast<char>(c | 32);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

}  // namespace

std::vector<Token> lex(std::string_view text) { return Lexer(text).run(); }

std::string unquote(std::string_view name) {
  if (name.empty() || name[0] != '"') return std::string(name);
  std::string out;
  for (size_t i = 1; i + 1 < name.size(); ++i) {
    if (name[i] != '\\') {
      out += name[i];
      continue;
    }
    if (i + 4 >= name.size() || name[i + 1] != 'x') return {};
    int high = hex_digit(name[i + 2]), low = hex_digit(name[i + 3]);
    if (high < 0 || low < 0) return {};
    out += static_cast<char>(high * 16 + low);
    i += 3;
  }
  return out;
}

}  // namespace uptier::jit
