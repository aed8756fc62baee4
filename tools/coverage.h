// coverage.h: which source lines ran, from blocks of code.
//
// A line's count is the count of its most frequent block; if several functions have code of the line (copies
// of an inlined body), executions are added. Functions that were never called have the count 0, and so do
// their lines. Lines whose code was never described, such as those after an endless loop, did not run.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/module_lines.h"
#include "uptier/profile.h"

namespace uptier::tools {

// Tells how often blocks (by site) and edges (from 0) of a module's functions ran.
class BlockCounts {
 public:
  virtual ~BlockCounts() = default;
  // Returns whether a count is 1 for a block that ran, however often.
  virtual bool hits() const = 0;
  virtual uint64_t block(uint32_t function, uint32_t block) const = 0;
  // Returns nothing if the count of an edge is not known.
  virtual std::optional<uint64_t> edge(uint32_t function, uint32_t edge) const = 0;
};

// Tells it by a profile of instrumented code.
class ExactCounts final : public BlockCounts {
 public:
  ExactCounts(const ModuleLines& module, const Profile& counts);
  bool hits() const override { return false; }
  uint64_t block(uint32_t function, uint32_t block) const override;
  std::optional<uint64_t> edge(uint32_t function, uint32_t edge) const override;

 private:
  const ModuleLines& module_;
  std::vector<const MethodProfile*> of_;  // by function; null: never called
};

// Tells by Module::covered whether each ran: 1 or 0. The lines must be read with `covers`. Borrows both.
class HitBlocks final : public BlockCounts {
 public:
  HitBlocks(const ModuleLines& module, std::span<const uint8_t> covered)
      : module_(module), covered_(covered) {}
  bool hits() const override { return true; }
  uint64_t block(uint32_t function, uint32_t block) const override;
  std::optional<uint64_t> edge(uint32_t function, uint32_t edge) const override;

 private:
  const ModuleLines& module_;
  std::span<const uint8_t> covered_;
};

struct Coverage {
  struct Function {
    std::string name;
    uint32_t line = 0;
    uint64_t calls = 0;
  };
  // A conditional branch of the code, by edge. The compiler decides which condition a source line has.
  struct Branch {
    uint32_t line = 0;
    bool reached = false;
    uint64_t counts[2] = {0, 0};
  };
  struct File {
    std::vector<Function> functions;  // by line, then name
    std::vector<Branch> branches;     // by line, then in the order of code
    std::map<uint32_t, uint64_t> lines;
  };
  std::map<std::string, File> files;
  bool hits = false;  // counts are runs in which something ran, not executions
};

Coverage coverage_of(const ModuleLines& module, const BlockCounts& counts);

// Returns the coverage in the format of lcov's tracefiles, or as JSON:
//   {"counts": "runs" | "executions",
//    "files": [{"file", "lines": [[line, count]...], "branches": [[line, count, count]...],
//               "functions": [{"name", "line", "calls"}...]}...]}
std::string coverage_lcov(const Coverage& c);
std::string coverage_json(const Coverage& c);

// Reads what coverage_json wrote. Errors: kCorruptInput.
Result<Coverage> coverage_from_json(const std::string& text);
// Adds the counts of another run of the same module. Errors: kInvalidInput: it has other lines or counts.
Status add_coverage(Coverage& to, const Coverage& run);

// Removes files that cannot be read here, such as a library's, whose sources genhtml would miss. Returns
// how many.
size_t leave_out_missing(Coverage& c);

}  // namespace uptier::tools
