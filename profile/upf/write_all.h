// write_all: all of some bytes to a file.
#pragma once

#include <unistd.h>

#include <cerrno>

#include "profile/bytes.h"

namespace uptier::profile {

// Returns 0 or an errno. What precedes the error may have been written.
inline int write_all(int fd, ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t taken = ::write(fd, bytes.data(), bytes.size());
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) return errno;
    if (taken == 0) return EIO;
    bytes = bytes.subspan(static_cast<size_t>(taken));
  }
  return 0;
}

}  // namespace uptier::profile
