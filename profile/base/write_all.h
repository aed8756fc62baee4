// write_all: writes some bytes to a file, completely.
#pragma once

#include <sys/types.h>

#include "profile/base/bytes.h"

namespace uptier::profile {

// Writes like write(2), except that exceeding the process's limit of file sizes (RLIMIT_FSIZE) is
// only an error, EFBIG: the signal that comes with it, SIGXFSZ, would end the process.
ssize_t write_some(int fd, ByteSpan bytes);

// Returns 0 or an errno. Bytes before the error may have been written.
int write_all(int fd, ByteSpan bytes);

}  // namespace uptier::profile
