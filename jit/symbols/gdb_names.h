// GdbNames: tells a debugger what compiled code is called, by gdb's interface for JIT compilers
// (gdb and lldb read it): an object file in memory for some bodies, in a list that the debugger
// knows, and a function that it stops at when the list changes.
//
// A debugger pays for each file that is there, so files are merged like the digits of a binary
// number: of n bodies there are at most log2 n files (and one more for each 2^15), and each has
// been in log2 n of them.
//
//   Thread: one at a time; the list itself is the process's, under a lock of its own.
//   Cost: a body is described log2 n times. With a debugger, a stop for each change.
#pragma once

#include <memory>
#include <vector>

#include "jit/code/named_code.h"

namespace uptier::jit {

class GdbNames {
 public:
  GdbNames();
  // Takes all its files back.
  ~GdbNames();
  GdbNames(const GdbNames&) = delete;
  GdbNames& operator=(const GdbNames&) = delete;

  // What was known by an address of this body goes: the code there was freed.
  void add(NamedCode code);
  // How many files are in the list, and the bodies they name.
  size_t files() const { return files_.size(); }
  size_t codes() const;

 private:
  struct File;
  void forget(const NamedCode& code);
  std::vector<std::unique_ptr<File>> files_;  // each of more bodies than the next
};

}  // namespace uptier::jit
