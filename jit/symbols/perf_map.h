// PerfMap: names for addresses of compiled code, in the file that `perf report` looks for.
//
// One line for each body: start and size in hex, then a name. Freed bodies stay listed; perf uses
// the last line that matches. Written only on request; replaces an old file of the same process id
// (tool_file.h).
//
//   Thread: one at a time.
#pragma once

#include <memory>

#include "jit/code/named_code.h"
#include "jit/symbols/append_file.h"
#include "uptier/result.h"

namespace uptier::jit {

class PerfMap {
 public:
  // Creates /tmp/perf-<pid>.map. Errors: kIo, e.g. if another runtime writes to it.
  static Result<std::unique_ptr<PerfMap>> create();

  // Adds a line at once, so that a crash loses nothing. Returns whether it is in the file.
  bool add(const NamedCode& code);

 private:
  explicit PerfMap(int fd) : file_(fd) {}
  AppendFile file_;
};

}  // namespace uptier::jit
