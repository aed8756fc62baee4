#include "tools/nearest.h"

#include <algorithm>

namespace uptier::tools {
namespace {

// Restricted Damerau-Levenshtein distance; `most` + 1 where the lengths alone differ by more.
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

std::string nearest(std::string_view word, std::span<const std::string> words) {
  std::string found;
  size_t least = 3;
  for (const std::string& candidate : words) {
    const size_t most = candidate.size() <= 3 ? 1 : 2;
    const size_t d = distance(word, candidate, most);
    if (d > most || d >= least) continue;
    least = d;
    found = candidate;
  }
  return found;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> words) {
  const std::string found = nearest(word, words);
  return found.empty() ? "" : "; did you mean " + found + "?";
}

}  // namespace uptier::tools
