// LineProfile: what a profile says of source lines.
//
//   executions   of a line in a function: those of its most frequent block; summed over functions
//   operations   sum over the line's operations of how often each ran
//   time         the sampled time of a function, divided among its lines in proportion to operations:
//                an estimate, since samples know functions only
//
// The bodies of inlined calls count in the methods that they come from, as in `fold_inlined`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/module_lines.h"
#include "uptier/profile_file.h"

namespace uptier::tools {

struct HotLine {
  std::string file;
  uint32_t line = 0;
  std::string function;  // in the sources; of several the one with most operations
  uint64_t executions = 0;
  double operations = 0;
  double ns = 0;
};

// A part of a method's code with one place, and its weight within the method.
struct LineWeight {
  std::vector<dwarf::SourceFrame> frames;  // innermost first
  double operations = 0;
};

class LineProfile {
 public:
  // Both are borrowed. Errors: kNotFound when the profile has no method of the module.
  static Result<LineProfile> of(const std::string& file, const ProfileFile& profile,
                                const ModuleLines& lines);

  // Returns the lines: most time first if there is time, else most operations.
  std::vector<HotLine> hottest() const;
  // Returns the weights of a method's lines, heaviest first; empty if none of them ran or is known.
  const std::vector<LineWeight>& weights(const MethodKey& key) const;
  double operations() const { return operations_; }
  double ns() const { return ns_; }
  const ModuleLines& lines() const { return *lines_; }

 private:
  LineProfile() = default;

  const ModuleLines* lines_ = nullptr;
  std::map<std::pair<std::string, uint32_t>, HotLine> by_line_;
  std::map<MethodKey, std::vector<LineWeight>> weights_;
  double operations_ = 0;
  double ns_ = 0;  // all sampled time, including other methods
};

// Prints the hottest lines as a table; `top` 0: all.
void print_lines(const LineProfile& lines, uint64_t top);
std::string lines_json(const LineProfile& lines);

}  // namespace uptier::tools
