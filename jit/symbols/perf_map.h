// PerfMap: names for addresses of compiled code, in the file that `perf report` looks for.
//
// One line a body: start and size in hex, then a name. Bodies that are freed stay listed; perf
// takes the last line that fits. Written only on request; an old file of the same process id goes
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
  // Creates /tmp/perf-<pid>.map. Errors: kIo, e.g. where another runtime writes to it.
  static Result<std::unique_ptr<PerfMap>> create();

  // Adds a line at once, so that a crash loses nothing. Returns whether the file has it.
  bool add(const NamedCode& code);

 private:
  explicit PerfMap(int fd) : file_(fd) {}
  AppendFile file_;
};

}  // namespace uptier::jit
