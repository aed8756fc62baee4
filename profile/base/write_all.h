// write_all: all of some bytes to a file.
#pragma once

#include <sys/types.h>

#include "profile/base/bytes.h"

namespace uptier::profile {

// Writes as write(2) does, but that the process's limit of file sizes (RLIMIT_FSIZE) is an error,
// EFBIG, and nothing more: the signal that comes with it, SIGXFSZ, would end the process.
ssize_t write_some(int fd, ByteSpan bytes);

// Returns 0 or an errno. What precedes the error may have been written.
int write_all(int fd, ByteSpan bytes);

}  // namespace uptier::profile
