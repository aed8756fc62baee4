// LlvmNames: the names of methods in the files that LLVM's tools read, each different.
//
//     name                    if no other method has it
//     name.MODULE.INDEX       of one of several: with the module's key, in hex, and the function's index
//
// Marks that the text formats of LLVM would misread become '_'. So do the dots of names that LLVM
// would cut off at one of its own endings ("f.llvm.1" is `f` to it).
#pragma once

#include <map>
#include <string>

#include "uptier/profile.h"

namespace uptier::profile {

// Returns a name without the marks that LLVM's text formats would misread: they become '_'.
std::string llvm_field(std::string name);

class LlvmNames {
 public:
  // Adds a method. Add all of them before the first call of of().
  void add(const MethodKey& key, std::string name);
  // Returns the name of a method, also of one that was not added.
  std::string of(const MethodKey& key) const;

 private:
  std::map<MethodKey, std::string> names_;
  std::map<std::string, uint64_t> uses_;
};

}  // namespace uptier::profile
