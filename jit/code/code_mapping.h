// CodeMapping: memory of code that is mapped twice, to run and to write.
//
//   the code area      in reach of the data; read-execute where code is, never writable
//   the writable twin  anywhere in the address space, at a place of its own that is drawn: at no
//                      constant distance from anything. Read-write where code is, closed elsewhere.
//                      Only the code space's own record knows it: no context of a thread, no data
//                      area, no code holds its address.
//
// Two ways, the second where the first is refused:
//
//   anonymous   pages of the area are closed, and made executable when code comes to lie in them
//   of a file   where a policy refuses to make mapped pages executable (PR_SET_MDWE, a filter of
//               system calls as of MemoryDenyWriteExecute): a file in memory, mapped executable as
//               a whole at once. Pages without code hold zeros until code first lies there.
//
// A forked child has no twin.
#pragma once

#include <cstdint>

#include "jit/code/random.h"

namespace uptier::jit {

struct CodeMapping {
  uint8_t* twin = nullptr;         // null: refused, and the area is as it was
  bool always_executable = false;  // pages cannot be opened, nor need to be
};

// Returns whether the kernel lets a page of the area, closed and anonymous, become executable. It is closed
// again.
bool can_open_pages(uint8_t* area);
// Maps the area, closed and anonymous as it is, a second time. The twin is closed: mprotect makes
// parts of it writable.
CodeMapping map_code_twice(uint8_t* area, uint64_t bytes, RandomBytes random);

}  // namespace uptier::jit
