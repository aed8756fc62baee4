#include "uptier/options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <type_traits>

#include "profile/base/wall.h"
#include "profile/upf/file.h"
#include "tiering/base/loop_choice.h"
#include "tiering/base/opt_range.h"
#include "tiering/base/stress.h"

namespace uptier {
namespace {

constexpr const char* kTierModes[] = {"auto", "baseline", "instrumented", "optimized"};
constexpr const char* kPolicyModes[] = {"auto", "always", "never"};
constexpr const char* kGapModes[] = {"random", "fixed", "prime", "exact"};
constexpr const char* kFlowModes[] = {"edges", "blocks"};
constexpr const char* kCounterModes[] = {"per_thread", "interlocked", "scalable", "racing", "dual"};
constexpr const char* kSampleEngines[] = {"task_clock", "cpu_timer"};
constexpr const char* kFindModes[] = {"counts", "samples", "both"};

std::span<const char* const> names(TierMode) { return kTierModes; }
std::span<const char* const> names(PolicyMode) { return kPolicyModes; }
std::span<const char* const> names(GapMode) { return kGapModes; }
std::span<const char* const> names(SampleEngine) { return kSampleEngines; }
std::span<const char* const> names(FindMode) { return kFindModes; }
std::span<const char* const> names(FlowMode) { return kFlowModes; }
std::span<const char* const> names(CounterMode) { return kCounterModes; }

Error bad_value(std::string_view name, std::string_view value, const std::string& want) {
  return {ErrorCode::kInvalidArgument,
          "option " + std::string(name) + ": \"" + std::string(value) + "\" is not " + want};
}

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return text;
}

// The type in which the table's bounds of a field are compared.
template <typename T>
using Bound = std::conditional_t<std::is_same_v<T, double>, double, uint64_t>;

template <typename T>
bool in_range(T v, Bound<T> low, Bound<T> high) {
  auto value = static_cast<Bound<T>>(v);
  return value >= low && value <= high;
}

// parse: text -> field; print: field -> text; range: the legal values, from the table.

template <typename E>
requires std::is_enum_v<E>
bool parse(std::string_view text, E& out) {
  auto list = names(E{});
  for (size_t i = 0; i < list.size(); ++i) {
    if (text == list[i]) {
      out = static_cast<E>(i);
      return true;
    }
  }
  return false;
}
// Suffixes of sizes in bytes, such as "64M": powers of 1,024.
constexpr std::string_view kSizes = "KMG";

bool is_bytes(std::string_view unit) { return unit.starts_with("bytes"); }

bool parse(std::string_view text, uint64_t& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}
bool parse(std::string_view text, double& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}
bool parse(std::string_view text, bool& out) {
  out = text == "1" || text == "true" || text == "on";
  return out || text == "0" || text == "false" || text == "off";
}

template <typename E>
requires std::is_enum_v<E> std::string print(E v) {
  auto list = names(v);
  auto i = static_cast<size_t>(v);  // any number, since check() prints illegal values too
  return i < list.size() ? list[i] : std::to_string(i);
}
std::string print(uint64_t v) { return std::to_string(v); }
std::string print(double v) { return number(v); }
std::string print(bool v) { return v ? "on" : "off"; }

bool parse_bytes(std::string_view text, uint64_t& out) {
  size_t size = text.empty() ? kSizes.npos : kSizes.find(text.back() & ~0x20);
  if (size == kSizes.npos) return parse(text, out);
  text.remove_suffix(1);
  unsigned shift = 10 * (static_cast<unsigned>(size) + 1);
  if (!parse(text, out) || out > UINT64_MAX >> shift) return false;
  out <<= shift;
  return true;
}

// Prints the number with the largest suffix that divides it.
std::string print_bytes(uint64_t v) {
  size_t size = 0;
  for (; size < kSizes.size() && v != 0 && v % 1024 == 0; ++size) v /= 1024;
  return std::to_string(v) + (size == 0 ? "" : std::string(1, kSizes[size - 1]));
}

// Returns the readable text of a field with this unit.
template <typename T>
std::string shown(T v, std::string_view unit) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    if (is_bytes(unit)) return print_bytes(v);
  }
  return print(v);
}

template <typename T>
std::string range(T, Bound<T> low, Bound<T> high, std::string_view unit) {
  if constexpr (std::is_enum_v<T>) {
    std::string text = "one of";
    for (const char* n : names(T{})) text += std::string(" ") + n;
    return text;
  } else if constexpr (std::is_same_v<T, bool>) {
    return "on or off";
  } else if constexpr (std::is_same_v<T, double>) {
    return "a number from " + number(low) + " to " + number(high);
  } else {
    if (is_bytes(unit)) {
      return "a size from " + print_bytes(low) + " to " + print_bytes(high) +
             ", in bytes, K, M or G";
    }
    return "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  }
}

template <typename T>
Status set_field(T& field, std::string_view name, std::string_view value, Bound<T> low,
                 Bound<T> high, std::string_view unit) {
  T parsed{};
  bool read = false;
  if constexpr (std::is_same_v<T, uint64_t>) {
    read = is_bytes(unit) ? parse_bytes(value, parsed) : parse(value, parsed);
  } else {
    read = parse(value, parsed);
  }
  if (!read || !in_range(parsed, low, high)) {
    return bad_value(name, value, range(parsed, low, high, unit));
  }
  field = parsed;
  return {};
}

std::string environment_name(std::string_view field) {
  std::string name = "UPTIER_";
  for (char c : field) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return name;
}

// A word without a "/" is more likely a mistake than a file in the current directory.
Status check_listen(std::string_view value) {
  const bool path = value.find('/') != std::string_view::npos && value.back() != '/' &&
                    value.find('\0') == std::string_view::npos;
  if (path || value.empty() || value == "on" || value == "off") return {};
  return bad_value("listen", value, "on, off or the path of a socket, such as /run/own/it.sock");
}

// Returns the table row of a text field, which may have any length.
std::string text_row(const char* name, std::string value, const char* empty, const char* unit,
                     const char* reason) {
  if (value.empty()) value = empty;
  value.resize(std::max<size_t>(value.size(), 12), ' ');
  char end[256];
  std::snprintf(end, sizeof end, " %-24s %s; %s\n", unit, reason, environment_name(name).c_str());
  std::string field = name;
  field.resize(std::max<size_t>(field.size(), 18), ' ');
  return field + " " + value + end;
}

}  // namespace

Result<Options> Options::from_env() try {
  Options o;
#define X(kind, field, fallback, low, high, unit, reason)                \
  if (const char* v = secure_getenv(environment_name(#field).c_str())) { \
    if (Status s = o.set(#field, v); !s) return s.error();               \
  }
  UPTIER_OPTIONS(X)
#undef X
  if (const char* v = secure_getenv("UPTIER_STRESS")) {
    if (Status s = o.set("stress", v); !s) return s.error();
  }
  if (const char* v = secure_getenv("UPTIER_OPT_RANGE")) {
    if (Status s = o.set("opt_range", v); !s) return s.error();
  }
  if (const char* v = secure_getenv("UPTIER_TIME_LOOPS")) {
    if (Status s = o.set("time_loops", v); !s) return s.error();
  }
  if (const char* v = secure_getenv("UPTIER_PROFILE")) {
    if (Status s = o.set("profile", v); !s) return s.error();
  }
  if (const char* v = secure_getenv("UPTIER_IMAGE")) {
    if (Status s = o.set("image", v); !s) return s.error();
  }
  if (const char* v = secure_getenv("UPTIER_LISTEN")) {
    if (Status s = o.set("listen", v); !s) return s.error();
  }
  return o;
} catch (const std::exception&) { return out_of_memory("options"); }

Status Options::set(std::string_view name, std::string_view value) try {
#define X(kind, field, fallback, low, high, unit, reason) \
  if (name == #field) return set_field(field, name, value, low, high, unit);
  UPTIER_OPTIONS(X)
#undef X
  if (name == "stress") {
    Result<tiering::StressPlan> plan = tiering::StressPlan::parse(value);
    if (!plan) return plan.error();
    stress = value;
    return {};
  }
  if (name == "opt_range") {
    Result<tiering::OptRange> range = tiering::OptRange::parse(value);
    if (!range) return range.error();
    opt_range = value;
    return {};
  }
  if (name == "time_loops") {
    Result<tiering::LoopChoice> choice = tiering::LoopChoice::parse(value);
    if (!choice) return choice.error();
    time_loops = value;
    return {};
  }
  if (name == "profile") {
    if (Status s = profile::check_name(value); !s) return s;
    profile = value;
    return {};
  }
  if (name == "image") {
    if (value.find('\0') != std::string_view::npos) return bad_value("image", value, "a file");
    image = value;
    return {};
  }
  if (name == "listen") {
    if (Status s = check_listen(value); !s) return s;
    listen = value == "off" ? "" : value;
    return {};
  }
  return Error{ErrorCode::kNotFound, "there is no option \"" + std::string(name) + "\""};
} catch (const std::exception&) { return out_of_memory("options"); }

Status Options::set(std::string_view assignment) try {
  size_t sign = assignment.find('=');
  if (sign != std::string_view::npos) {
    return set(assignment.substr(0, sign), assignment.substr(sign + 1));
  }
  return Error{ErrorCode::kInvalidArgument,
               "an option is NAME=VALUE, not \"" + std::string(assignment) + "\""};
} catch (const std::exception&) { return out_of_memory("options"); }

Status Options::check() const try {
#define X(kind, field, fallback, low, high, unit, reason) \
  if (!in_range(field, low, high))                        \
    return bad_value(#field, print(field), range(field, low, high, unit));
  UPTIER_OPTIONS(X)
#undef X
  Result<tiering::StressPlan> plan = tiering::StressPlan::parse(stress);
  if (!plan) return plan.error();
  Result<tiering::OptRange> range_of_hashes = tiering::OptRange::parse(opt_range);
  if (!range_of_hashes) return range_of_hashes.error();
  Result<tiering::LoopChoice> choice = tiering::LoopChoice::parse(time_loops);
  if (!choice) return choice.error();
  if (Status s = check_listen(listen); !s) return s;
  if (keep_code && !probe_table) {
    return Error{ErrorCode::kInvalidArgument,
                 "option keep_code: images of code need its rows; turn probe_table on"};
  }
  return profile::check_name(profile);
} catch (const std::exception&) { return out_of_memory("options"); }

std::string Options::changes() const try {
  const Options defaults;
  std::string text;
  auto add = [&](const char* name, const std::string& value, const std::string& usual) {
    if (value != usual) text += (text.empty() ? "" : " ") + std::string(name) + "=" + value;
  };
#define X(kind, field, fallback, low, high, unit, reason) \
  add(#field, print(field), print(defaults.field));
  UPTIER_OPTIONS(X)
#undef X
  add("stress", stress, "");
  add("opt_range", opt_range, "");
  add("time_loops", time_loops, "");
  add("profile", profile, "");
  add("image", image, "");
  add("listen", listen, "");
  return text;
} catch (const std::exception&) { return {}; }

std::string Options::table() const try {
  std::string text;
  char line[512];
#define X(kind, field, fallback, low, high, unit, reason)                                         \
  std::snprintf(line, sizeof line, "%-18s %-12s %-24s %s\n%-18s %-12s   %s; UPTIER_%s\n", #field, \
                shown(field, unit).c_str(), unit, reason, "", "",                                 \
                range(field, low, high, unit).c_str(), environment_name(#field).c_str() + 7);     \
  text += line;
  text += "-- options for embedders\n";
  UPTIER_EMBEDDER_OPTIONS(X)
  text += text_row("profile", profile, "none", "file",
                   "profile read at the start and written at the end; %p %h %t %c in its name");
  text += text_row("image", image, "none", "file",
                   "code made ahead of time (`uptier image`); as trusted as the executable");
  text += text_row("listen", listen, "off", "on or path",
                   "a socket on which `uptier top` reads where time goes; of this user, read-only");
  text += "-- options for research\n";
  UPTIER_RESEARCH_OPTIONS(X)
#undef X
  text += text_row("stress", stress, "off", "plan",
                   "force transitions and failures for tests: kind=form[,kind=form]");
  text += text_row("opt_range", opt_range, "all", "hash..hash",
                   "optimize only methods whose hash lies in this range; to find a faulty one");
  text +=
      text_row("time_loops", time_loops, "all", "function:loop[,..]",
               "time only these loops; the others are counted, so that they disturb these less");
  return text;
} catch (const std::exception&) { return {}; }

}  // namespace uptier
