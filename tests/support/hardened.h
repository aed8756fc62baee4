// Sets the hardening of the CodeMachines that a test creates, for a scope.
#pragma once

#include "tests/support/code_machine.h"

namespace uptier::test {

class Hardened {
 public:
  explicit Hardened(const jit::Hardening& h) : before_(CodeMachine::hardening) {
    CodeMachine::hardening = h;
  }
  ~Hardened() { CodeMachine::hardening = before_; }
  Hardened(const Hardened&) = delete;
  Hardened& operator=(const Hardened&) = delete;

 private:
  jit::Hardening before_;
};

}  // namespace uptier::test
