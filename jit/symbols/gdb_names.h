// GdbNames: tells a debugger the names of compiled code, by gdb's interface for JIT compilers (gdb
// and lldb read it): an object file in memory for some bodies, in a list that the debugger knows,
// and a function at which it stops when the list changes.
//
// A debugger has a cost for each file, so files are merged like the digits of a binary number: n
// bodies are in at most log2 n files (and one more for each 2^15), and each body has been in log2 n
// of them.
//
//   Thread: one at a time; the list itself belongs to the process and has a lock of its own.
//   Cost: a body is described log2 n times. With a debugger, a stop for each change.
#pragma once

#include <memory>
#include <vector>

#include "jit/code/named_code.h"

namespace uptier::jit {

class GdbNames {
 public:
  GdbNames();
  // Removes all its files from the list.
  ~GdbNames();
  GdbNames(const GdbNames&) = delete;
  GdbNames& operator=(const GdbNames&) = delete;

  // Adds a body. Forgets bodies at the same addresses: their code was freed.
  void add(NamedCode code);
  // The number of files in the list, and of the bodies that they name.
  size_t files() const { return files_.size(); }
  size_t codes() const;

 private:
  struct File;
  void forget(const NamedCode& code);
  std::vector<std::unique_ptr<File>> files_;  // each has more bodies than the next
};

}  // namespace uptier::jit
