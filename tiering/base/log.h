// Log: where the library says what nobody asked for (Options::log).
//
// Law: a line is said whole, by one call or one write, and nothing is kept or allocated here. Nothing
// that compiled code reaches says anything, but for what ends the process: it counts, and who comes
// next without guest frames says it (notices.h).
//
//   Thread: any.
#pragma once

#include <string_view>

#include "uptier/options.h"

namespace uptier::tiering {

class Log {
 public:
  explicit Log(const Options& o) : function_(o.log), user_(o.log_user) {}

  // Says a line: `text` has a 0 behind it, as that of a std::string or a literal has.
  void say(LogLevel level, std::string_view text) const noexcept;

 private:
  LogFunction function_;
  void* user_;
};

}  // namespace uptier::tiering
