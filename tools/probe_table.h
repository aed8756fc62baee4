// probe_table.h: what the rows of blocks (CodeTables::probes) take, and that code does not depend on them.
//
// Each function is compiled with rows and without, in turn, kRounds times by each compiler. The least
// processor time of each kind counts, so the share is a difference of two measured times, and may be negative
// where it is less than their noise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/commands.h"
#include "tools/compile_world.h"

namespace uptier::tools {

struct ProbeTableCost {
  struct Method {
    std::string name;
    uint64_t rows = 0;
    uint64_t row_bytes = 0;
    uint64_t code_bytes = 0;
    bool same = true;  // its bytes with rows and without
  };

  const char* compiler = "";
  std::vector<Method> methods;
  uint64_t failed = 0;     // functions that are not compiled
  double seconds = 0;      // of processor time, without rows
  double row_seconds = 0;  // the difference to the time with rows

  Method sum() const;
  // Returns the share of compile time with rows that rows take.
  double share() const { return row_seconds / (seconds + row_seconds); }
};

// Compiles all functions; `rounds` times, at least once. Errors: those of CompileWorld::create;
// kUnsupported if codes cannot be compared on this kernel.
Result<std::vector<ProbeTableCost>> probe_table_costs(const Functions& functions, int rounds);

// Prints them. Returns the exit code: 1 if a function's code depends on its rows.
int show_probe_table(const CompileCommand& c, const Functions& functions);

}  // namespace uptier::tools
