// write_all: writes some bytes to a file, completely.
#pragma once

#include <sys/types.h>

#include <span>

#include "profile/base/bytes.h"
#include "uptier/gather.h"

namespace uptier::profile {

// Writes like write(2), except that exceeding the process's limit of file sizes (RLIMIT_FSIZE) is
// only an error, EFBIG: the signal that comes with it, SIGXFSZ, would end the process.
ssize_t write_some(int fd, ByteSpan bytes);

// Returns 0 or an errno. Bytes before the error may have been written.
int write_all(int fd, ByteSpan bytes);

// The same for pieces, one after the other, from the memory where they lie.
int write_pieces(int fd, std::span<const Piece> pieces);

}  // namespace uptier::profile
