// bind_socket: makes the socket of a process.
//
// Law: only the user may connect, from the first moment. A socket that a killed process has left is
// replaced; a file of another kind, a link, or a socket where somebody answers is not touched.
#pragma once

#include <sys/types.h>

#include "tiering/live/own_fd.h"
#include "tiering/live/socket_place.h"
#include "uptier/result.h"

namespace uptier::tiering {

struct BoundSocket {
  OwnFd fd;         // listens, never blocks
  ino_t inode = 0;  // of its file
};

// Errors: kIo, kInvalidArgument.
Result<BoundSocket> bind_socket(const SocketPlace& place);

// Returns a stream socket that never blocks; empty: refused.
OwnFd new_socket();
// Connects to a place, without waiting. Returns 0 or an errno.
int connect_to(const SocketPlace& place, const OwnFd& socket);

}  // namespace uptier::tiering
