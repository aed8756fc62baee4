// not_negative: a check of counts on the command line, which the parser would wrap around.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace uptier::tools {

inline CLI::Validator not_negative() {
  return CLI::Validator(
      [](std::string& word) {
        const size_t first = word.find_first_not_of(" \t\n\v\f\r");
        const bool negative = first != std::string::npos && word[first] == '-';
        return negative ? word + " is negative" : std::string();
      },
      "");
}

}  // namespace uptier::tools
