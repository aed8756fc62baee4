#include "jit/code/code_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8U
#endif

namespace uptier::jit {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr unsigned kTries = 64;
// The addresses where a twin may lie: any process may map them. 2^35 places.
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kLowest = 0x7e8000000000, kEnd = 0x7ff000000000;  // the rest is its shadow's
#else
constexpr uint64_t kLowest = uint64_t{1} << 32, kEnd = uint64_t{1} << 47;
#endif

// Maps at a random place; returns null if the kernel refuses. A kernel that does not know
// MAP_FIXED_NOREPLACE treats the address as a hint.
uint8_t* map_somewhere(uint64_t bytes, int flags, int fd, RandomBytes random) {
  for (unsigned n = 0; n < kTries; ++n) {
    uint64_t draw;
    if (!random(&draw, sizeof draw)) return nullptr;
    uint64_t places = (kEnd - kLowest - bytes) / kPageBytes;
    auto wanted = kLowest + draw % places * kPageBytes;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    auto* at = reinterpret_cast<void*>(wanted);
    void* p = ::mmap(at, bytes, PROT_NONE, flags | MAP_FIXED_NOREPLACE, fd, 0);
    if (p == at) return static_cast<uint8_t*>(p);
    if (p != MAP_FAILED) ::munmap(p, bytes);
  }
  return nullptr;
}

void close_again(uint8_t* area, uint64_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  (void)::mmap(area, bytes, PROT_NONE, kFlags, -1, 0);
}

uint8_t* map_anonymous(uint8_t* area, uint64_t bytes, RandomBytes random) {
  uint8_t* twin = map_somewhere(bytes, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, random);
  if (twin == nullptr) return nullptr;
  // The old length is 0: the mapping stays where it is, and its memory also appears here.
  int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
  bool done = ::mremap(twin, 0, bytes, flags, area) != MAP_FAILED &&
              ::madvise(twin, bytes, MADV_DONTFORK) == 0;
  if (done) return twin;
  ::munmap(twin, bytes);
  close_again(area, bytes);
  return nullptr;
}

int open_memory(uint64_t bytes) {
  int fd = ::memfd_create("uptier code", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (fd < 0) fd = ::memfd_create("uptier code", MFD_CLOEXEC);  // before Linux 6.3
  if (fd < 0) return -1;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) == 0) return fd;
  ::close(fd);
  return -1;
}

uint8_t* map_file(uint8_t* area, uint64_t bytes, RandomBytes random) {
  int fd = open_memory(bytes);
  if (fd < 0) return nullptr;
  uint8_t* twin = map_somewhere(bytes, MAP_SHARED | MAP_NORESERVE, fd, random);
  int flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
  bool done = twin != nullptr && ::madvise(twin, bytes, MADV_DONTFORK) == 0 &&
              ::mmap(area, bytes, PROT_READ | PROT_EXEC, flags, fd, 0) != MAP_FAILED;
  ::close(fd);
  if (done) return twin;
  if (twin != nullptr) ::munmap(twin, bytes);
  close_again(area, bytes);
  return nullptr;
}

}  // namespace

bool can_open_pages(uint8_t* area) {
  bool can = ::mprotect(area, kPageBytes, PROT_READ | PROT_EXEC) == 0;
  return can && ::mprotect(area, kPageBytes, PROT_NONE) == 0;
}

CodeMapping map_code_twice(uint8_t* area, uint64_t bytes, RandomBytes random) {
  if (can_open_pages(area)) return {map_anonymous(area, bytes, random), false};
  return {map_file(area, bytes, random), true};
}

}  // namespace uptier::jit
