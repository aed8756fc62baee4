#include "profile/data/text.h"

#include "profile/base/numbers.h"

namespace uptier::profile {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

std::string word_text(WordRule rule, const uint64_t* word) {
  switch (rule) {
    case WordRule::kWide: return to_text(load_wide(word));
    case WordRule::kMin:
    case WordRule::kMax: return std::to_string(static_cast<int64_t>(*word));
    default: return std::to_string(*word);
  }
}

// Returns whether a text begins like a formula, after any number of '.
bool is_formula(std::string_view text) {
  const size_t first = text.find_first_not_of('\'');
  constexpr std::string_view kMarks = "=+-@\t\r";
  return first != text.npos && kMarks.find(text[first]) != kMarks.npos;
}

}  // namespace

std::string guarded(std::string_view text) {
  return (is_formula(text) ? "'" : "") + std::string(text);
}

std::string_view unguarded(std::string_view text) {
  const bool has_guard = text.starts_with('\'') && is_formula(text);
  return has_guard ? text.substr(1) : text;
}

std::string hex(uint64_t value) {
  std::string out = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[(value >> shift) & 15];
  return out;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string words_text(SlotKind kind, const uint64_t* counts, const uint64_t* estimates) {
  const std::span<const Word> words = words_of(kind);
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].rule == WordRule::kWideHigh) continue;
    if (words.size() > 1 || has_table(kind)) out += " " + std::string(words[i].name);
    const std::string count = word_text(words[i].rule, counts + i);
    out += " " + count;
    if (estimates == nullptr || !is_sum(words[i].rule)) continue;
    const std::string estimate = word_text(words[i].rule, estimates + i);
    if (estimate != count) out += " ~" + estimate;
  }
  return out;
}

}  // namespace uptier::profile
