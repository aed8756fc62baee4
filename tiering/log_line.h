// log_line: what the library has to say by itself.
#pragma once

#include <cstdio>
#include <string>

#include "uptier/options.h"

namespace uptier::tiering {

// Hands a line to Options::log, or to stderr where there is none.
inline void log_line(const Options& options, LogLevel level, const std::string& line) {
  if (options.log != nullptr) return options.log(options.log_user, level, line);
  std::fprintf(stderr, "uptier: %s\n", line.c_str());
}

}  // namespace uptier::tiering
