// image_words.h: the words of `uptier image`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/commands.h"
#include "tools/runtime_words.h"

namespace uptier::tools {

// Outlives the parsing: commands are run while words are parsed. `code` receives the exit code.
class ImageWords {
 public:
  void add_to(CLI::App& image, RuntimeWords& words, int& code);

 private:
  int call(RuntimeWords& words);

  std::vector<std::string> what_;
  ImageCommand command_;
};

}  // namespace uptier::tools
