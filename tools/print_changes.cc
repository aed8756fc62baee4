// The forms in which people read changes between profiles; profile_changes.cc has the one for programs.
#include <algorithm>
#include <cstdio>

#include "tools/profile_changes.h"
#include "tools/profile_top.h"
#include "tools/shortened.h"

namespace uptier::tools {
namespace {

constexpr size_t kMostNames = 20;  // in a list within a line
constexpr const char* kAssumption =
    "One file on each side: the noise is assumed; several files after --before and --after "
    "measure it.";

std::string plural(size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

// "time: 2 of 14 methods moved beyond the noise"
std::string summary(const MeasuredChanges& m) {
  const std::string moved =
      m.beyond == 0 ? "no method of " + std::to_string(m.items.size())
                    : std::to_string(m.beyond) + " of " + plural(m.items.size(), "method");
  return std::string(m.by) + ": " + moved + " moved beyond the noise";
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMostNames) text += " and " + plural(names.size() - kMostNames, "other");
  return text;
}

// The name as code in a table: nothing in it ends the cell or the code.
std::string cell(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == '|') text += '\\';
    text += c == '`' ? '\'' : static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  return "`" + text + "`";
}

// Returns whether it says that the method is behind.
bool print_row(const ProfileChanges& changes, const profile::NamedChange& item) {
  const profile::ShareChange& c = item.change;
  std::printf("%-32s %7.2f %% %7.2f %% %+9.2f %9.2f",
              shortened(changes.name(item.frame), 32).c_str(), 100 * c.before, 100 * c.after,
              100 * c.moved(), 100 * c.noise);
  const MethodOverlap* alike = changes.alike(item.frame);
  const bool behind = alike != nullptr && (alike->behind_a || alike->behind_b);
  if (alike != nullptr) std::printf(" %9.4f", alike->value);
  if (alike == nullptr && c.beyond) std::printf("%10s", "");
  std::printf("%s%s%s\n", c.beyond ? "  beyond the noise" : "",
              alike != nullptr && alike->mismatched ? "  other code" : "",
              behind ? "  behind" : "");
  return behind;
}

size_t rows_of(const MeasuredChanges& m, uint64_t top) {
  return static_cast<size_t>(std::min<uint64_t>(m.items.size(), top));
}

}  // namespace

void print_changes_in_short(const ProfileChanges& changes) {
  for (const MeasuredChanges& m : changes.measured) {
    std::string text = summary(m);
    for (size_t i = 0; i < std::min(m.beyond, kMostNames); ++i) {
      char moved[64];
      std::snprintf(moved, sizeof moved, " %+.2f (noise %.2f)", 100 * m.items[i].change.moved(),
                    100 * m.items[i].change.noise);
      text += (i == 0 ? ": " : ", ") + changes.name(m.items[i].frame) + moved;
    }
    if (m.beyond > kMostNames) text += " and " + plural(m.beyond - kMostNames, "other");
    std::puts(text.c_str());
  }
}

void print_changes(const ProfileChanges& changes, uint64_t top) {
  std::printf("overlap %.6f\n", changes.overlap.program.value);
  bool behind = false;
  for (const MeasuredChanges& m : changes.measured) {
    std::printf("\n%s\n%-32s %9s %9s %9s %9s %9s\n", summary(m).c_str(), "method", "share a",
                "share b", "moved", "noise", "overlap");
    for (size_t i = 0; i < rows_of(m, top); ++i) behind |= print_row(changes, m.items[i]);
  }
  if (!changes.added.empty()) std::printf("\nadded: %s\n", list_of(changes.added).c_str());
  if (!changes.gone.empty()) std::printf("\ngone: %s\n", list_of(changes.gone).c_str());
  explain_behind(behind);
  if (changes.is_assumed()) std::printf("\n%s\n", kAssumption);
}

void print_changes_as_markdown(const ProfileChanges& changes, uint64_t top) {
  for (const MeasuredChanges& m : changes.measured) {
    std::printf(
        "**%s**\n\n| method | before | after | moved | noise | |\n"
        "|:--|--:|--:|--:|--:|:--|\n",
        summary(m).c_str());
    for (size_t i = 0; i < rows_of(m, top); ++i) {
      const profile::ShareChange& c = m.items[i].change;
      const char* bold = c.beyond ? "**" : "";
      std::printf("| %s | %.2f %% | %.2f %% | %s%+.2f%s | %.2f | %s |\n",
                  cell(changes.name(m.items[i].frame)).c_str(), 100 * c.before, 100 * c.after, bold,
                  100 * c.moved(), bold, 100 * c.noise, c.beyond ? "beyond the noise" : "");
    }
    std::puts("");
  }
  std::vector<std::string> added, gone;
  for (const std::string& n : changes.added) added.push_back(cell(n));
  for (const std::string& n : changes.gone) gone.push_back(cell(n));
  if (!added.empty()) std::printf("Added: %s.\n\n", list_of(added).c_str());
  if (!gone.empty()) std::printf("Gone: %s.\n\n", list_of(gone).c_str());
  if (changes.is_assumed()) std::puts(kAssumption);
}

}  // namespace uptier::tools
