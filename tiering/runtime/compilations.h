// Compilations: makes the version for a plan, and installs it.
//
// A failed compilation changes nothing for calls: the method keeps its code. The failure is counted
// in the losses and kept as the method's last error.
//
//   Thread: any. The caller does not hold the state mutex.
#pragma once

#include "uptier/plan.h"

namespace uptier::tiering {

struct Engine;
class Installer;
struct Method;

class Compilations {
 public:
  // All outlive this.
  Compilations(Engine& engine, Installer& installer) : engine_(engine), installer_(installer) {}

  // Compiles the version for `plan` and installs it. Does nothing if the method has been removed.
  void compile_and_install(const Plan& plan) noexcept;
  // Records that memory ran out while making code for a method.
  void note_no_memory(Method& m) noexcept;
  // Records that a method's code was needed by its own `build`, or by one that is waiting for it.
  void say_turn_refused(Method& m);

 private:
  void compile_plan(const Plan& plan);
  bool counts_nothing(Method& m, const Plan& plan);

  Engine& engine_;
  Installer& installer_;
};

}  // namespace uptier::tiering
