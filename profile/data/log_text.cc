#include "uptier/log_text.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>

namespace uptier {
namespace {

Error refuse(size_t at, const std::string& rule) {
  return Error{ErrorCode::kInvalidArgument,
               "log format, character " + std::to_string(at) + ": " + rule};
}

// Returns the letter of the placeholder at the front of `rest`, which begins with a brace, and
// removes it; nothing if there is none.
std::optional<char> take_placeholder(std::string_view& rest) {
  if (rest.starts_with("{}")) {
    rest.remove_prefix(2);
    return 'd';
  }
  const bool lettered = rest.size() >= 3 && rest[2] == '}' &&
                        std::string_view("uxf").find(rest[1]) != std::string_view::npos;
  if (!lettered) return std::nullopt;
  const char letter = rest[1];
  rest.remove_prefix(3);
  return letter;
}

// Returns whether `rest` begins with a brace that is doubled.
bool is_doubled(std::string_view rest) {
  return rest.size() >= 2 && rest[0] == rest[1] && (rest[0] == '{' || rest[0] == '}');
}

std::string argument_text(char letter, uint64_t bits) {
  char text[64];
  switch (letter) {
    case 'u': std::snprintf(text, sizeof text, "%" PRIu64, bits); break;
    case 'x': std::snprintf(text, sizeof text, "0x%" PRIx64, bits); break;
    case 'f': {
      double value;
      std::memcpy(&value, &bits, sizeof value);
      std::snprintf(text, sizeof text, "%.17g", value);
      break;
    }
    default: std::snprintf(text, sizeof text, "%" PRId64, static_cast<int64_t>(bits)); break;
  }
  return text;
}

}  // namespace

Result<std::string> log_placeholders(std::string_view format) {
  if (format.size() > LogFormat::kMostText) {
    return refuse(LogFormat::kMostText,
                  "a format has at most " + std::to_string(LogFormat::kMostText) + " bytes");
  }
  std::string letters;
  for (std::string_view rest = format; !rest.empty();) {
    const size_t at = format.size() - rest.size();
    if (rest[0] == '\0') return refuse(at, "a zero byte");
    if (is_doubled(rest)) {
      rest.remove_prefix(2);
    } else if (rest[0] == '}') {
      return refuse(at, "a } without a {; write }} for a brace");
    } else if (rest[0] == '{') {
      const std::optional<char> letter = take_placeholder(rest);
      if (!letter) return refuse(at, "a placeholder is {}, {u}, {x} or {f}; write {{ for a brace");
      letters += *letter;
    } else {
      rest.remove_prefix(1);
    }
    if (letters.size() > LogFormat::kMostArguments) {
      return refuse(at, "more than " + std::to_string(LogFormat::kMostArguments) + " placeholders");
    }
  }
  return letters;
}

std::string log_text(std::string_view format, std::span<const uint64_t> arguments) {
  std::string text;
  while (!format.empty()) {
    if (is_doubled(format)) {
      text += format[0];
      format.remove_prefix(2);
      continue;
    }
    const std::optional<char> letter =
        format[0] == '{' ? take_placeholder(format) : std::optional<char>();
    if (!letter) {
      text += format[0];
      format.remove_prefix(1);
      continue;
    }
    text += arguments.empty() ? "?" : argument_text(*letter, arguments[0]);
    if (!arguments.empty()) arguments = arguments.subspan(1);
  }
  return text;
}

std::vector<LogLine> log_lines(std::span<const LogRecord> records, uint64_t* incomplete) {
  std::vector<LogLine> lines;
  std::map<uint32_t, LogLine> open;  // by thread
  uint64_t lost = 0;
  for (const LogRecord& r : records) {
    const LogFormat format{r.tag & ~uint32_t{15}};
    const uint32_t index = r.tag & 15, arguments = format.arguments();
    const bool whole = format.valid() && arguments <= LogFormat::kMostArguments &&
                       (index < arguments || index + arguments == 0);
    if (!whole) continue;
    const auto at = open.find(r.thread);
    const bool goes_on = index > 0 && at != open.end() && at->second.format == format &&
                         at->second.method == r.method && at->second.arguments.size() == index;
    if (goes_on) {
      at->second.arguments.push_back(r.value);
    } else {
      if (at != open.end()) open.erase(at), ++lost;
      // A line that has lost its beginning is counted at its last record.
      if (index > 0) {
        lost += index + 1 == arguments;
        continue;
      }
      LogLine line{r.method, r.site, r.thread, r.cycles, format, {}};
      if (arguments > 0) line.arguments.push_back(r.value);
      open.insert_or_assign(r.thread, std::move(line));
    }
    const auto done = open.find(r.thread);
    if (done->second.arguments.size() < arguments) continue;
    lines.push_back(std::move(done->second));
    open.erase(done);
  }
  if (incomplete != nullptr) *incomplete = lost + open.size();
  return lines;
}

}  // namespace uptier
