// Log: writes the library's own messages (Options::log).
//
// Law: a line is written whole, by one call or one write, and nothing is kept or allocated here.
// Code that compiled code reaches writes nothing, except a message that ends the process: it
// counts, and the next thread without guest frames writes the message (notices.h).
//
//   Thread: any.
#pragma once

#include <string_view>

#include "uptier/options.h"

namespace uptier::tiering {

class Log {
 public:
  explicit Log(const Options& o) : function_(o.log), user_(o.log_user) {}

  // Writes a line: `text` must be followed by a 0, like the text of a std::string or a literal.
  void say(LogLevel level, std::string_view text) const noexcept;

 private:
  LogFunction function_;
  void* user_;
};

}  // namespace uptier::tiering
