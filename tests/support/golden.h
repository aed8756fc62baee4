// golden.h: compares text with a file under tests/golden/.
//
// With UPTIER_BLESS=1 in the environment it rewrites the file instead; review the change before you
// keep it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>
#include "test_paths.h"

namespace uptier::test {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (!text.empty() && text.back() != '\n') lines.back() += "\\ no newline at the end";
  return lines;
}

// Returns the lines that differ, without the common lines at the beginning and the end: "-" is
// expected, "+" is actual.
inline std::string diff(const std::string& expected, const std::string& actual) {
  const std::vector<std::string> a = lines_of(expected), b = lines_of(actual);
  size_t first = 0;
  while (first < a.size() && first < b.size() && a[first] == b[first]) ++first;
  size_t last = 0;
  while (last < a.size() - first && last < b.size() - first &&
         a[a.size() - 1 - last] == b[b.size() - 1 - last]) {
    ++last;
  }
  std::string out = "@@ line " + std::to_string(first + 1) + "\n";
  for (size_t i = first; i < a.size() - last; ++i) out += "-" + a[i] + "\n";
  for (size_t i = first; i < b.size() - last; ++i) out += "+" + b[i] + "\n";
  return out;
}

// Fails unless tests/golden/<name>.txt holds exactly `text`; `name` may contain folders.
inline void expect_golden(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(UPTIER_SOURCE_DIR) / "tests" / "golden" / (name + ".txt");
  const char* bless = std::getenv("UPTIER_BLESS");
  if (bless != nullptr && std::string_view(bless) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in.good()) << path << " is missing; UPTIER_BLESS=1 writes it";
  std::ostringstream expected;
  expected << in.rdbuf();
  EXPECT_TRUE(expected.str() == text) << path << " differs (UPTIER_BLESS=1 rewrites it)\n"
                                      << diff(expected.str(), text);
}

}  // namespace uptier::test
