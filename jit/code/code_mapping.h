// CodeMapping: code memory that is mapped twice, once to execute and once to write.
//
//   the code area      within rel32 reach of the data; read-execute where code is, never writable
//   the writable twin  anywhere in the address space, at a random place of its own, so at no constant
//                      distance from anything. Read-write where code is, closed elsewhere. Only the
//                      code space's own record knows its address: no thread's context, no data area
//                      and no code holds it.
//
// There are two ways; the second is used if the first is refused:
//
//   anonymous   pages of the area are closed, and become executable when code is placed in them
//   of a file   for a policy that refuses to make mapped pages executable (PR_SET_MDWE, a system call
//               filter such as MemoryDenyWriteExecute): a file in memory, mapped executable as a whole
//               at once. Its pages hold zeros until code is placed in them.
//
// A forked child has no twin.
#pragma once

#include <cstdint>

#include "jit/code/random.h"

namespace uptier::jit {

struct CodeMapping {
  uint8_t* twin = nullptr;         // null: refused, and the area is unchanged
  bool always_executable = false;  // pages cannot be opened, and need not be
};

// Returns whether the kernel lets a page of the area, which is closed and anonymous, become
// executable. Closes the page again.
bool can_open_pages(uint8_t* area);
// Maps the area, which is closed and anonymous, a second time. The twin is closed: mprotect makes
// parts of it writable.
CodeMapping map_code_twice(uint8_t* area, uint64_t bytes, RandomBytes random);

}  // namespace uptier::jit
