#include "tools/environment.h"

#include <unistd.h>

#include <algorithm>
#include "tools/nearest.h"
#include "uptier/options.h"

namespace uptier::tools {
namespace {

constexpr std::string_view kPrefix = "UPTIER_";

// The fields that have no row are those that Options::from_env names.
constexpr std::string_view kFields[] = {
#define X(kind, field, fallback, low, high, unit, reason) #field,
    UPTIER_OPTIONS(X)
#undef X
        "stress",
    "opt_range",
    "time_loops",
    "profile",
    "image",
    "listen"};

std::string capitals(std::string_view field) {
  std::string name(field);
  for (char& c : name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return name;
}

}  // namespace

std::vector<std::string> option_names() { return {std::begin(kFields), std::end(kFields)}; }

std::string nearest_option(std::string_view name) {
  std::vector<std::string> options;
  for (const std::string_view field : kFields) options.push_back(capitals(field));
  const bool is_option = std::ranges::find(options, name) != options.end();
  return is_option ? "" : nearest(name, options);
}

std::vector<std::string> doubtful_variables() {
  std::vector<std::string> lines;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable = *at;
    const std::string_view name = variable.substr(0, variable.find('='));
    if (!name.starts_with(kPrefix)) continue;
    const std::string near = nearest_option(name.substr(kPrefix.size()));
    if (near.empty()) continue;
    lines.push_back(std::string(name) + " is no option; " + std::string(kPrefix) + near + " is");
  }
  return lines;
}

}  // namespace uptier::tools
