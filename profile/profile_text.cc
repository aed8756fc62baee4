// The text form of profiles: a printer, and a parser by recursive descent over words.
#include <algorithm>
#include <array>
#include <utility>

#include "profile/schema.h"
#include "profile/text.h"

namespace uptier {
namespace {

constexpr uint64_t kTextVersion = 1;

std::string method_text(const MethodProfile& method) {
  std::string out = "\nmethod " + profile::hex(method.key.module_key) + " " +
                    std::to_string(method.key.function_index) + " " + profile::quote(method.name) +
                    " {\n";
  out += "  calls " + std::to_string(method.calls) + "\n";
  out += "  sampled " + std::to_string(method.sampled_calls) + "\n";
  out += "  interval " + std::to_string(method.interval) + "\n";
  out += "  cfg " + profile::hex(method.schema.cfg_hash) + "\n";
  for (const Slot& slot : method.schema.slots) {
    out += "  " + std::string(slot_kind_name(slot.kind)) + " " + std::to_string(slot.site);
    for (uint32_t i = 0; i < slot.words; ++i) {
      out += " " + std::to_string(method.counts[slot.word + i]);
    }
    out += "\n";
  }
  return out + "}\n";
}

// A message may hold a method's name, and that a newline.
std::string comment(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text + "\n";
}

struct Position {
  size_t line = 1;
  size_t column = 1;
};

// A word, a quoted text, or one of the braces. Empty at the end of the input.
struct Token {
  std::string_view text;
  Position at;
  bool quoted = false;  // `text` is then what stands between the quotes

  bool is(std::string_view word) const { return !quoted && text == word; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}

  Token next() {
    skip_blanks();
    Token token;
    token.at = at_;
    if (rest_.empty()) return token;
    size_t size = 1;
    if (rest_[0] == '"') {
      size = quoted_size();
      token.quoted = size < rest_.size() && rest_[size] == '"';
      // A text that is never closed keeps its quote, so no rule accepts it.
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

 private:
  static bool is_brace(char c) { return c == '{' || c == '}'; }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  static bool ends_word(char c) { return is_blank(c) || is_brace(c) || c == '#' || c == '"'; }

  void skip_blanks() {
    while (!rest_.empty()) {
      if (rest_[0] == '#')
        advance(std::min(rest_.find('\n'), rest_.size()));
      else if (is_blank(rest_[0]))
        advance(1);
      else
        return;
    }
  }

  // Returns the size of opening quote and text, up to the closing quote or the end of the line.
  size_t quoted_size() const {
    size_t size = 1;
    while (size < rest_.size() && rest_[size] != '"' && rest_[size] != '\n') {
      size += rest_[size] == '\\' ? 2 : 1;
    }
    return std::min(size, rest_.size());
  }

  void advance(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      ++at_.column;
      if (rest_[i] == '\n') at_ = {at_.line + 1, 1};
    }
    rest_.remove_prefix(count);
  }

  std::string_view rest_;
  Position at_;
};

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    uint64_t digit = base;
    if (c >= '0' && c <= '9') digit = static_cast<uint64_t>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<uint64_t>(c - 'a') + 10;
    const bool fits = digit < base && !__builtin_mul_overflow(value, base, &value) &&
                      !__builtin_add_overflow(value, digit, &value);
    if (!fits) return std::nullopt;
  }
  return value;
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
    const auto value = parse_number("0x" + std::string(text.substr(i + 2, 2)));
    if (!value) return std::nullopt;
    out += static_cast<char>(*value);
    i += 3;
  }
  return out;
}

std::optional<SlotKind> parse_kind(const Token& token) {
  for (auto kind = static_cast<uint8_t>(SlotKind::kBlock);
       kind <= static_cast<uint8_t>(SlotKind::kCounter); ++kind) {
    if (token.is(slot_kind_name(static_cast<SlotKind>(kind)))) return static_cast<SlotKind>(kind);
  }
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { step(); }

  Result<Profile> run() {
    if (!expect("uptier-profile")) return *error_;
    const Position version_at = token_.at;
    if (number(UINT64_MAX) != kTextVersion) fail(version_at, "only version 1 is known");
    while (!error_ && !at_end()) method();
    if (error_) return *error_;
    return std::move(profile_);
  }

 private:
  void method() {
    method_ = {};
    counts_.clear();
    seen_ = {};
    const Position at = token_.at;
    expect("method");
    method_.key.module_key = number(UINT64_MAX);
    method_.key.function_index = static_cast<uint32_t>(number(UINT32_MAX));
    name();
    expect("{");
    while (!error_ && !token_.is("}") && !at_end()) line();
    expect("}");
    if (!error_) finish_method(at);
  }

  // One line between the braces: a field that occurs once, or a count.
  void line() {
    const std::array<std::pair<std::string_view, uint64_t*>, 4> fields = {{
        {"calls", &method_.calls},
        {"sampled", &method_.sampled_calls},
        {"interval", &method_.interval},
        {"cfg", &method_.schema.cfg_hash},
    }};
    for (size_t i = 0; i < fields.size(); ++i) {
      if (!token_.is(fields[i].first)) continue;
      if (seen_[i]) return fail(token_.at, "a field stands twice");
      seen_[i] = true;
      step();
      *fields[i].second = number(UINT64_MAX);
      return;
    }
    count_line();
  }

  void count_line() {
    const Position at = token_.at;
    const std::optional<SlotKind> kind = parse_kind(token_);
    if (!kind) return fail(at, "expected calls, sampled, interval, cfg, a slot kind or }");
    step();
    const auto site = static_cast<uint32_t>(number(UINT32_MAX));
    const uint64_t count = number(UINT64_MAX);
    if (error_) return;
    if (!counts_.emplace(std::pair(*kind, site), count).second) fail(at, "a site stands twice");
  }

  void finish_method(Position at) {
    if (!seen_[3]) return fail(at, "the method has no cfg hash");
    for (const auto& [site, count] : counts_) {
      const auto word = static_cast<uint32_t>(method_.counts.size());
      method_.schema.slots.push_back({site.first, site.second, word, 1});
      method_.counts.push_back(count);
    }
    if (const Status status = method_.check(); !status.ok()) {
      return fail(at, status.error().message);
    }
    const MethodKey key = method_.key;
    if (!profile_.methods.emplace(key, std::move(method_)).second) {
      fail(at, "a method stands twice");
    }
  }

  void name() {
    const std::optional<std::string> text = unquote(token_.text);
    if (!token_.quoted) return fail(token_.at, "expected a name in double quotes");
    if (!text) return fail(token_.at, "escapes are \\\", \\\\ and \\xNN");
    method_.name = *text;
    step();
  }

  uint64_t number(uint64_t max) {
    const std::optional<uint64_t> value = token_.quoted ? std::nullopt : parse_number(token_.text);
    if (!value || *value > max) {
      fail(token_.at, "expected a number from 0 to " + std::to_string(max));
      return 0;
    }
    step();
    return *value;
  }

  bool expect(std::string_view word) {
    if (!token_.is(word)) fail(token_.at, "expected " + std::string(word));
    step();
    return !error_;
  }

  // Keeps the first error only.
  void fail(Position at, const std::string& rule) {
    if (error_) return;
    error_ = Error{ErrorCode::kInvalidInput, "profile " + std::to_string(at.line) + ":" +
                                                 std::to_string(at.column) + ": " + rule};
  }

  void step() { token_ = lexer_.next(); }
  bool at_end() const { return token_.text.empty() && !token_.quoted; }

  Lexer lexer_;
  Token token_;
  Profile profile_;
  MethodProfile method_;  // the one between the braces
  std::map<std::pair<SlotKind, SiteId>, uint64_t> counts_;
  std::array<bool, 4> seen_ = {};  // fields of `line`
  std::optional<Error> error_;
};

}  // namespace

std::string to_text(const Profile& profile) {
  std::string out = "uptier-profile " + std::to_string(kTextVersion) + "\n";
  for (const auto& [key, method] : profile.methods) {
    const Status status = method.check();
    out += status.ok() ? method_text(method) : "\n# left out: " + comment(status.error().message);
  }
  return out;
}

Result<Profile> parse_profile(std::string_view text) { return Parser(text).run(); }

}  // namespace uptier
