// reserve.h: a reserve of memory, for when malloc refuses.
//
// A program that links uptier::reserve reserves a range of addresses, and touches none of its pages
// until it must. If malloc refuses a request of code that is linked into the program (the library
// and its parts, and the program itself; for shared libraries only `operator new`), the reserve
// serves it. Freed memory is used again. When the reserve is used up too, memory is refused, and
// the library behaves as docs/notes/0043 says.
//
// The library does not link the reserve, because replacing a program's `operator new` is the
// program's decision. In CMake: target_link_libraries(program PRIVATE uptier::reserve). Sanitizers
// have allocators of their own, and do not need it.
//
//   Thread: any. After fork() as well.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uptier::reserve {

constexpr size_t kBytes = 16 << 20;  // the size of the reserve

struct Use {
  uint64_t served = 0;   // requests that malloc refused and the reserve served
  uint64_t refused = 0;  // requests that both refused
  uint64_t blocks = 0;   // blocks in use now
};
// Returns the counts so far.
Use use() noexcept;

}  // namespace uptier::reserve
