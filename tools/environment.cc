#include "tools/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>

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
    "opt_range", "time_loops", "profile"};

std::string capitals(std::string_view field) {
  std::string name(field);
  for (char& c : name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return name;
}

// Letters to change, insert, remove or swap with their neighbour; stops counting behind `most`.
size_t distance(std::string_view a, std::string_view b, size_t most) {
  const size_t longer = std::max(a.size(), b.size());
  if (longer - std::min(a.size(), b.size()) > most) return most + 1;
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t same = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + same});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_option(std::string_view name) {
  std::string nearest;
  size_t least = 3;
  for (const std::string_view field : kFields) {
    const std::string option = capitals(field);
    if (option == name) return "";
    const size_t most = option.size() <= 3 ? 1 : 2;
    const size_t d = distance(name, option, most);
    if (d > most || d >= least) continue;
    least = d;
    nearest = option;
  }
  return nearest;
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
