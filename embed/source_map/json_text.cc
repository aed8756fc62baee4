#include "embed/source_map/json_text.h"

namespace uptier::source_map {
namespace {

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void JsonText::spaces() {
  while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string::npos) {
    ++at_;
  }
}

bool JsonText::take(char c) {
  if (bad_ || at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void JsonText::expect(char c) {
  if (!take(c)) stop();
}

bool JsonText::starts(char c) {
  spaces();
  return !bad_ && at_ < text_.size() && text_[at_] == c;
}

bool JsonText::ends() {
  spaces();
  return !bad_ && at_ == text_.size();
}

void JsonText::open(char bracket) {
  spaces();
  expect(bracket);
  first_ = true;
}

bool JsonText::next(char close) {
  spaces();
  if (take(close)) return first_ = false;
  if (!first_) expect(',');
  first_ = false;
  return !bad_;
}

bool JsonText::next_key(std::string_view& key) {
  if (!next('}')) return false;
  spaces();
  key = skip_text();
  spaces();
  expect(':');
  return !bad_;
}

bool JsonText::next_item() { return next(']'); }

std::string_view JsonText::plain_text() {
  spaces();
  expect('"');
  if (bad_) return {};
  const size_t end = text_.find('"', at_);
  if (end == std::string_view::npos) return stop(), std::string_view();
  const std::string_view found = text_.substr(at_, end - at_);
  if (found.find('\\') != std::string_view::npos) return stop(), std::string_view();
  at_ = end + 1;
  first_ = false;
  return found;
}

std::string JsonText::text() {
  std::string out;
  spaces();
  const JsonText here = *this;
  const size_t most = skip_text().size();
  if (bad_) return out;
  *this = here;
  out.reserve(most);
  expect('"');
  while (!bad_ && !take('"')) {
    if (at_ >= text_.size() || static_cast<unsigned char>(text_[at_]) < ' ') {
      stop();
    } else if (!take('\\')) {
      out += text_[at_++];
    } else if (!escape(out)) {
      stop();
    }
  }
  first_ = false;
  return out;
}

// Reads what follows a backslash.
bool JsonText::escape(std::string& out) {
  if (at_ >= text_.size()) return false;
  const char c = text_[at_++];
  constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  if (const size_t i = kFrom.find(c); i != std::string_view::npos) {
    out += kTo[i];
    return true;
  }
  if (c != 'u') return false;
  uint32_t code = hex4();
  if (code >= 0xd800 && code < 0xdc00 && take('\\') && take('u')) {
    const uint32_t low = hex4();
    if (low < 0xdc00 || low > 0xdfff) return false;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  if (bad_ || (code >= 0xd800 && code < 0xe000)) return false;
  append_utf8(out, code);
  return true;
}

uint32_t JsonText::hex4() {
  uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const size_t digit = at_ < text_.size()
                             ? std::string_view("0123456789abcdefABCDEF").find(text_[at_])
                             : std::string_view::npos;
    if (digit == std::string_view::npos) return stop(), 0;
    value = value * 16 + static_cast<uint32_t>(digit < 16 ? digit : digit - 6);
    ++at_;
  }
  return value;
}

uint32_t JsonText::integer() {
  spaces();
  uint64_t value = 0;
  const size_t begin = at_;
  while (at_ < text_.size() && is_digit(text_[at_]) && value <= INT32_MAX) {
    value = value * 10 + static_cast<uint64_t>(text_[at_++] - '0');
  }
  first_ = false;
  if (at_ == begin || value > INT32_MAX) return stop(), 0;
  return static_cast<uint32_t>(value);
}

// Returns the text as it is written.
std::string_view JsonText::skip_text() {
  expect('"');
  const size_t begin = at_;
  while (!bad_ && !take('"')) {
    at_ += at_ < text_.size() && text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) stop();
  }
  return bad_ ? std::string_view() : text_.substr(begin, at_ - 1 - begin);
}

// Counts brackets and does not match them: what is passed over matters to nobody.
void JsonText::skip() {
  size_t depth = 0;
  do {
    spaces();
    if (at_ >= text_.size()) return stop();
    const char c = text_[at_];
    if (c == '"') {
      skip_text();
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at_;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return stop();
      --depth;
      ++at_;
    } else if (c == ',' || c == ':') {
      if (depth == 0) return stop();
      ++at_;
    } else {
      // A number, true, false or null.
      const size_t begin = at_;
      while (at_ < text_.size() &&
             std::string_view(" \t\r\n,:]}[{\"").find(text_[at_]) == std::string_view::npos) {
        ++at_;
      }
      if (at_ == begin) return stop();
    }
  } while (!bad_ && depth > 0);
  first_ = false;
}

}  // namespace uptier::source_map
