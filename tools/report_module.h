// report_module.h: what a program's module adds to its profile: how blocks follow each other, which
// loops and calls lie in which loop, and the code as text.
//
// A method is looked at only if the profile is of this code (the same CFG hash).
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/compile_world.h"
#include "uptier/profile.h"

namespace uptier::tools {

class ReportModule {
 public:
  // Reads a .wasm file or IR text. `profile` must outlive this. Errors: as read_functions.
  static Result<std::unique_ptr<ReportModule>> open(const std::string& path,
                                                    const Profile& profile);

  // Returns the function of a method, or null where there is none of this code.
  const jit::Function* find(const MethodProfile& m) const;

  // Calls that ran: from a method, in a loop (its site, 0: in none), to a method.
  struct Call {
    SiteId loop = 0;
    MethodKey callee;
    double count = 0;
  };
  std::vector<Call> calls(const MethodProfile& m) const;

  // Returns the site of the next loop outwards of each loop, by site - 1; 0 for none. The last entry
  // belongs to the function's body.
  std::vector<SiteId> loop_parents(const MethodProfile& m) const;

  // Returns [from, to] of each edge by its site - 1: block sites, 0 is outside.
  nlohmann::ordered_json edges_json(const MethodProfile& m) const;

  // Returns {"ir": [[block's site or 0, text]..], "code": [[site, inlined method or "", text]..],
  // "made": what made the code}; the code as the compiler makes it of this profile.
  nlohmann::ordered_json code_json(const MethodProfile& m, bool optimized);

 private:
  explicit ReportModule(const Profile& profile) : profile_(profile) {}
  MethodId id_of(const MethodProfile& m) const;
  MethodKey key_of(MethodId m) const;

  const Profile& profile_;
  Functions functions_;
  std::map<MethodKey, MethodId> by_key_;
  std::map<std::string, MethodId> by_name_;       // of IR text
  std::map<std::string, MethodKey> key_of_name_;  // likewise, in the profile
  std::unique_ptr<CompileWorld> world_;
};

}  // namespace uptier::tools
