// SpareBuild: reuses the memory of finished descriptions for later ones.
//
//   begin   spare tables -> builder      before the host describes a method
//   keep    builder -> spare tables      when the description is finished
//   keep    Function -> spare tables     when the function is no longer read
//
// A description grows a dozen tables, which are freed a moment later: allocating, copying and
// freeing them is a sixteenth of the instructions that a description executes. Tables are handed on
// empty, for their capacity.
//
// Bounded: at most two of each kind (one for a thread of the program, one for the worker), and no
// table beyond kMostBytes.
//
//   Thread: any.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "jit/frontend/builder_access.h"
#include "uptier/thread_safety.h"

namespace uptier::jit {

class SpareBuild {
 public:
  static constexpr size_t kMostBytes = 4 << 20;

  SpareBuild();
  ~SpareBuild();

  FunctionBuilder begin(const Signature& signature, std::string_view name);
  // `b` was finished.
  void keep(FunctionBuilder& b);
  void keep(Function f);

 private:
  static constexpr size_t kMost = 2;

  CheckedLock<std::mutex> mutex_;
  std::vector<std::unique_ptr<BuilderAccess::Impl>> builders_ UPTIER_GUARDED_BY(mutex_);
  std::vector<Function> functions_ UPTIER_GUARDED_BY(mutex_);
};

}  // namespace uptier::jit
