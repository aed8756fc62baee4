// JitDump: compiled code with its names, for `perf inject --jit`, which makes a file of each body
// that `perf annotate` disassembles. Unlike a perf map, it also covers code that was freed.
//
//     perf record -k mono -e cpu-clock uptier run -O jit_dump=on prog.wasm
//     perf inject --jit -i perf.data -o perf.jit.data; perf annotate -i perf.jit.data
//
// perf is notified of each page that becomes executable, as one mapping together with the pages
// around it. It takes that for new contents: known bodies in these pages lose their names. So while
// there is a dump, pages that bodies share are executable from the start
// (CodeSpace::Limits::open_at_once).
//
// The format is described in tools/perf/Documentation/jitdump-specification.txt in the sources of
// Linux: a header, then
// for each body a record of its source lines, if they are known, and one of its name, address and bytes. perf finds the file because a
// page of it is mapped executable; nothing is executed there.
//
//   Thread: one at a time.
#pragma once

#include <memory>

#include "jit/code/named_code.h"
#include "jit/symbols/append_file.h"
#include "uptier/result.h"

namespace uptier::jit {

class JitDump {
 public:
  // Creates /tmp/jit-<pid>.dump (tool_file.h). Errors: kIo, e.g. if another runtime writes to it.
  static Result<std::unique_ptr<JitDump>> create();
  ~JitDump();
  JitDump(const JitDump&) = delete;
  JitDump& operator=(const JitDump&) = delete;

  // Adds a record at once. Returns whether it is in the file; a failed write leaves nothing of it
  // there.
  bool add(const NamedCode& code);

 private:
  JitDump(int fd, void* marker) : file_(fd), marker_(marker) {}
  AppendFile file_;
  void* marker_;
  uint64_t codes_ = 0;
};

}  // namespace uptier::jit
