// NativeTools: the programs beside this one that want to know what compiled code is called.
//
//   Thread: one at a time.
#pragma once

#include <atomic>

#include "jit/symbols/gdb_names.h"
#include "jit/symbols/jit_dump.h"
#include "jit/symbols/perf_map.h"

namespace uptier::jit {

class Code;

// Returns what tools are told of a body: its hot part and, if it has one, its cold part. The name
// lacks its closing bracket. `at_loop`: it is entered in the middle of a loop, and lives in the
// frame of another body.
std::vector<NamedCode> parts_of(const Code& code, const std::string& name, bool at_loop);

// Null for those that nobody asked for.
struct NativeTools {
  std::unique_ptr<PerfMap> perf_map;
  std::unique_ptr<JitDump> jit_dump;
  std::unique_ptr<GdbNames> gdb_names;

  // As parts_of.
  void add(const Code& code, const std::string& name, bool at_loop);
  void add(NamedCode code);
  // The same without gdb, which would want to know of its frames.
  void name(const NamedCode& code);
  // Counts a body that was not added, since memory was refused.
  void note_lost() { lost_.fetch_add(1, std::memory_order_relaxed); }
  // Bodies that are missing in a file: it could not be written, or memory was refused. Thread: any.
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> lost_{0};
};

}  // namespace uptier::jit
