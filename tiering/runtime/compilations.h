// Compilations: makes one version that a plan asks for, and installs it.
//
// A compilation that fails changes nothing for calls: the method keeps the code it has. The failure is
// counted in the losses and kept as the method's last error.
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

  // Compiles what `plan` asks for and installs it. Does nothing when the method has been removed.
  void compile_and_install(const Plan& plan) noexcept;
  // Records that memory for the code of a method was refused.
  void note_no_memory(Method& m) noexcept;
  // Records that a method's code was wanted by its own `build`, or by one that this waits for.
  void say_turn_refused(Method& m);

 private:
  void compile_plan(const Plan& plan);

  Engine& engine_;
  Installer& installer_;
};

}  // namespace uptier::tiering
