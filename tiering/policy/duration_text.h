// duration_text: durations as text, for the reasons of decisions.
#pragma once

#include <cassert>
#include <cstdio>
#include <string>

namespace uptier {

// Returns "473 us", "1.1 ms" or "2.31 s": three digits in the unit that fits. `ns` is not negative.
inline std::string duration_text(double ns) {
  const char* unit = ns < 1e6 ? "us" : ns < 1e9 ? "ms" : "s";
  const double scale = ns < 1e6 ? 1e3 : ns < 1e9 ? 1e6 : 1e9;
  assert(ns >= 0);
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", ns / scale, unit);
  return text;
}

}  // namespace uptier
