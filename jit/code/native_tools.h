// NativeTools: the programs beside this one that want to know what compiled code is called.
//
//   Thread: one at a time.
#pragma once

#include "jit/code/gdb_names.h"
#include "jit/code/jit_dump.h"
#include "jit/code/perf_map.h"

namespace uptier::jit {

class Code;

// Null for those that nobody asked for.
struct NativeTools {
  std::unique_ptr<PerfMap> perf_map;
  std::unique_ptr<JitDump> jit_dump;
  std::unique_ptr<GdbNames> gdb_names;

  // The name lacks its closing bracket. `at_loop`: it is entered in the middle of a loop, and lives
  // in the frame of another body.
  void add(const Code& code, const std::string& name, bool at_loop);
  void add(NamedCode code);
};

}  // namespace uptier::jit
