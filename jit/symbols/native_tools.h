// NativeTools: external programs that want the names of compiled code.
//
//   Thread: one at a time.
#pragma once

#include <atomic>

#include "jit/symbols/gdb_names.h"
#include "jit/symbols/jit_dump.h"
#include "jit/symbols/perf_map.h"

namespace uptier::jit {

class Code;

// Returns the parts of a body as tools see them: its hot part and, if it has one, its cold part.
// The name lacks its closing bracket. `at_loop`: it is entered in the middle of a loop, in the
// frame of another body. `source`: null for parts without lines.
std::vector<NamedCode> parts_of(const Code& code, const std::string& name, bool at_loop,
                                PositionSource* source = nullptr);

// A tool that is not wanted is null.
struct NativeTools {
  std::unique_ptr<PerfMap> perf_map;
  std::unique_ptr<JitDump> jit_dump;
  std::unique_ptr<GdbNames> gdb_names;

  // As parts_of.
  void add(const Code& code, const std::string& name, bool at_loop, PositionSource& source);
  void add(NamedCode code);
  // The same without gdb, which would need descriptions of its frames.
  void name(const NamedCode& code);
  // Counts a body that was not added because memory was refused.
  void note_lost() { lost_.fetch_add(1, std::memory_order_relaxed); }
  // The number of bodies missing in a file: it could not be written, or memory was refused. Thread:
  // any.
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> lost_{0};
};

}  // namespace uptier::jit
