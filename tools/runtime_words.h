// RuntimeWords: the runtime's options on the command line.
//
// They are set over the environment's, in the order of the command line, whatever they are called
// there: the last one said wins.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "uptier/options.h"
#include "uptier/result.h"

namespace uptier::tools {

class RuntimeWords {
 public:
  void add_to(CLI::App& app);

  // Sets the rate of stack samples.
  void sample(const std::string& hz) { set_first("sample_hz", hz); }
  // Keeps code and stack samples, which are taken if no rate is given.
  void keep_code() { set_first("keep_code", "on"); }
  // Puts the process's socket there.
  void listen(const std::string& where) { set_first("listen", where); }
  // Takes code from this image.
  void image(const std::string& file) { set_first("image", file); }
  // Sets the options that a table of loops needs: every call is observed, and code never changes.
  void imply_loops();
  // Has blocks counted by themselves: counts that follow from those of edges are not always exact.
  void imply_coverage() { set_first("flow", "blocks"); }

  bool sets(std::string_view name) const;
  // Returns all options. `guest`: for programs of others, whose constants are blinded unless
  // somebody says otherwise.
  Result<Options> options(bool guest = false) const;

 private:
  void named(CLI::App& app, const char* flag, const char* field, const char* help);
  void set_first(const char* name, const std::string& value) {
    given_.insert(given_.begin(), {name, value});
  }
  bool asks_for(std::string_view name, std::string_view unless) const;
  void sample_if_told(Options& o) const;

  std::vector<std::pair<std::string, std::string>> given_;
};

}  // namespace uptier::tools
