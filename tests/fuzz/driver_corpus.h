// driver_corpus.h: the stored inputs of fuzzers. Included by the drivers.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "test_paths.h"
#include "tests/fuzz/fuzz.h"

namespace uptier::fuzz {

std::vector<std::string> kept_inputs(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(UPTIER_SOURCE_DIR "/tests/fuzz/corpus") / name;
  std::vector<std::filesystem::path> paths;
  std::error_code error;  // if there is no folder
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);  // so that a run depends on its number only
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

}  // namespace uptier::fuzz
