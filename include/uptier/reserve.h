// reserve: memory for when there is none.
//
// A program that links uptier::reserve has a range of addresses for itself, which it touches no page of
// before it must. What malloc refuses to the code that is linked into the program (the library and what it
// is made of, and the program itself; of shared libraries, `operator new` alone) comes from there. What is freed may
// be used again. When the reserve is used up too, memory is refused, and the library does what
// docs/notes/0043 says.
//
// The library does not link it: that a program's `operator new` is another one is for the program to say.
// In CMake: target_link_libraries(program PRIVATE uptier::reserve). Sanitizers have allocators of their own,
// and need none of it.
//
//   Thread: any. After fork() as well.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uptier::reserve {

constexpr size_t kBytes = 16 << 20;

struct Use {
  uint64_t served = 0;   // requests that malloc refused, and the reserve did not
  uint64_t refused = 0;  // that both refused
  uint64_t blocks = 0;   // in use now
};
Use use() noexcept;

}  // namespace uptier::reserve
