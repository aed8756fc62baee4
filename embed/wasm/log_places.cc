#include "embed/wasm/log_places.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "embed/wasm/code_reader.h"
#include "embed/wasm/opcodes.h"
#include "uptier/log_text.h"

namespace uptier::wasm {
namespace {

constexpr uint32_t kMostLocals = 50'000;  // of a valid body

Error refuse(std::string_view request, const std::string& rule) {
  return Error{ErrorCode::kInvalidInput, "log place \"" + std::string(request) + "\": " + rule};
}

// Reads a whole number, decimal or with 0x in front.
std::optional<uint32_t> number_of(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  const bool whole = !text.empty() && error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// Returns an own function of this name or number.
std::optional<uint32_t> function_of(const ModuleInfo& info, std::string_view name) {
  for (const auto& [function, its] : info.names) {
    if (its == name && function >= info.imported_functions) return function;
  }
  for (const Export& e : info.exports) {
    const bool own = e.kind == ExternKind::kFunction && e.index >= info.imported_functions;
    if (own && e.name == name) return e.index;
  }
  const std::optional<uint32_t> number = number_of(name);
  const bool own = number && *number >= info.imported_functions && *number < info.functions.size();
  return own ? number : std::nullopt;
}

// The parts of a request.
struct Parts {
  uint32_t function = 0;
  std::optional<uint32_t> at;
  std::string_view text;
};

// Names may have any characters, so the first = that ends a function and an offset counts.
std::optional<Parts> split(const ModuleInfo& info, std::string_view request) {
  for (size_t end = request.find('='); end != request.npos; end = request.find('=', end + 1)) {
    const std::string_view place = request.substr(0, end);
    const std::string_view text = request.substr(end + 1);
    if (const auto function = function_of(info, place)) return Parts{*function, {}, text};
    const size_t at = place.rfind('@');
    if (at == place.npos) continue;
    const auto function = function_of(info, place.substr(0, at));
    const auto offset = number_of(place.substr(at + 1));
    if (function && offset) return Parts{*function, offset, text};
  }
  return std::nullopt;
}

// The locals of a function, and the offsets of its instructions.
struct Body {
  std::vector<Type> locals;
  std::vector<uint32_t> instructions;
  bool bad = false;
};

Body read_body(const ModuleInfo& info, uint32_t function) {
  Body body;
  body.locals = info.type_of(function).params;
  CodeReader reader(info, info.functions[function]);
  for (uint32_t groups = reader.u32(); groups > 0 && !reader.bad(); --groups) {
    const LocalGroup group = reader.local_group();
    if (reader.bad()) break;
    body.bad = group.count > kMostLocals || body.locals.size() + group.count > kMostLocals;
    if (body.bad) return body;
    body.locals.insert(body.locals.end(), group.count, group.type);
  }
  while (!reader.done() && !reader.bad()) {
    body.instructions.push_back(reader.offset());
    reader.skip(immediates_of(reader.op()));
  }
  body.bad = reader.bad();
  return body;
}

// Turns {N} into the placeholder of its type. Returns the rule that the text breaks, or nothing.
std::string translate(std::string_view text, const std::vector<Type>& locals, std::string& format,
                      std::vector<LogPlace::Argument>& arguments) {
  for (; !text.empty(); text.remove_prefix(1)) {
    if (text.starts_with("{{") || text.starts_with("}}")) {
      format += text.substr(0, 2);
      text.remove_prefix(1);
      continue;
    }
    if (text[0] != '{') {
      format += text[0];
      continue;
    }
    const size_t end = text.find('}');
    std::string_view inside = end == text.npos ? text : text.substr(1, end - 1);
    const std::string whole(text.substr(0, end == text.npos ? end : end + 1));
    std::string letter;
    if (inside.ends_with(":u") || inside.ends_with(":x")) {
      letter = inside.substr(inside.size() - 1);
      inside.remove_suffix(2);
    }
    const std::optional<uint32_t> local = number_of(inside);
    if (end == text.npos || !local) return whole + " is not {N}, {N:u} or {N:x}";
    if (*local >= locals.size()) {
      return whole + ": the function has " + std::to_string(locals.size()) + " locals";
    }
    const Type type = locals[*local];
    const bool is_float = type == Type::kF32 || type == Type::kF64;
    if (is_float && !letter.empty()) return whole + ": the local is a floating-point number";
    format += is_float ? "{f}" : "{" + letter + "}";
    arguments.push_back({*local, !letter.empty()});
    text.remove_prefix(end);
  }
  return {};
}

bool is_before(const LogPlace& a, const LogPlace& b) {
  return std::pair(a.function, a.at) < std::pair(b.function, b.at);
}

}  // namespace

Status LogPlaces::add(const ModuleInfo& info, Runtime& runtime, std::string_view request) {
  const std::optional<Parts> parts = split(info, request);
  if (!parts) {
    return refuse(request,
                  "it names no function of the module; write FUNCTION=TEXT or "
                  "FUNCTION@OFFSET=TEXT, with a name or a number");
  }
  const Body body = read_body(info, parts->function);
  if (body.bad || body.instructions.empty()) {
    return refuse(request, "the function's body cannot be decoded");
  }
  LogPlace place;
  place.function = parts->function;
  place.at = parts->at.value_or(body.instructions.front());
  if (!std::ranges::binary_search(body.instructions, place.at)) {
    return refuse(request, "no instruction of the function begins at offset " +
                               std::to_string(place.at) + "; they lie at " +
                               std::to_string(body.instructions.front()) + " to " +
                               std::to_string(body.instructions.back()));
  }
  std::string format;
  const std::string rule = translate(parts->text, body.locals, format, place.arguments);
  if (!rule.empty()) return refuse(request, rule);
  const Result<LogFormat> made = runtime.add_log_format(format);
  if (!made) return refuse(request, made.error().message);
  place.format = *made;
  places_.insert(std::ranges::upper_bound(places_, place, is_before), std::move(place));
  return {};
}

std::span<const LogPlace> LogPlaces::find(uint32_t function) const {
  const auto [first, last] = std::ranges::equal_range(places_, function, {}, &LogPlace::function);
  return {first, last};
}

}  // namespace uptier::wasm
