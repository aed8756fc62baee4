#include "jit/code/random.h"

#include <sys/random.h>

#include <cerrno>

namespace uptier::jit {

bool kernel_random(void* to, size_t bytes) {
  auto* next = static_cast<char*>(to);
  while (bytes != 0) {
    ssize_t got = ::getrandom(next, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace uptier::jit
