// interpreter_runtime.h: a Runtime that compiles nothing. It runs every method in the reference
// interpreter, which separates faults of the engine's descriptions from faults of the compilers.
//
// Memories must have explicit bounds checks, unless the program is known not to trap: the interpreter has no
// guard pages.
//
//   Thread: one at a time.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jit/frontend/interpret.h"
#include "jit/ir/module.h"
#include "tools/null_runtime.h"

namespace uptier::tools {

class InterpreterRuntime : public NullRuntime {
 public:
  // Creates a real runtime too, for the thread context that Runtime::raise writes to.
  InterpreterRuntime();
  ~InterpreterRuntime() override;

  Result<MethodId> add_method(Host& host, MethodInfo info) override;
  const void* entry_address(MethodId m) const override;
  Outcome invoke(MethodId m, std::span<const uint64_t> args) override;

  // The bodies to run in place of those that the hosts describe, by MethodId::index(); others are as
  // described. Set it before the first invoke.
  std::vector<std::optional<jit::Function>> instead;
  jit::InterpretObserver* observer = nullptr;

  // Describes the methods that were added since, which invoke does otherwise.
  void describe();
  const jit::Module& module() const { return module_; }
  const MethodInfo& info(uint32_t m) const { return methods_[m].info; }
  // Returns the first problem, or "": the verifier refuses a body, or a program stopped.
  const std::string& problem() const { return problem_; }

  // Return the executions so far, by block site and by edge number, with number 1 at index 0; empty
  // if the method was never entered.
  std::span<const uint64_t> blocks(uint32_t m) const { return counts_[m].blocks; }
  std::span<const uint64_t> edges(uint32_t m) const { return counts_[m].edges; }

 private:
  struct Registered {
    Host* host;
    MethodInfo info;
  };
  struct Counts {
    std::vector<uint64_t> blocks, edges;
  };

  jit::Function body_of(uint32_t m);
  void add_counts(const jit::Interpreter& interpreter);
  void note(const std::string& problem);

  std::unique_ptr<Runtime> behind_;
  std::unique_ptr<ThreadScope> scope_;
  std::deque<Registered> methods_;
  std::vector<Counts> counts_;
  jit::Module module_;
  std::string problem_;
};

}  // namespace uptier::tools
