// SocketPlace: where a process's socket lies, and whether that place can be trusted.
//
//   "on"   $XDG_RUNTIME_DIR/uptier/PID.sock; without such a directory /tmp/uptier-UID/PID.sock
//   PATH   as it is given
//
// Law: the socket's directory is a real directory, not a link to one; it belongs to this user, and
// no other user may even look into it. It is opened once and checked; from then on the socket is
// reached through that opened directory, whatever happens to the names above it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tiering/live/own_fd.h"
#include "uptier/result.h"

struct sockaddr_un;

namespace uptier::tiering {

// The names of sockets are ids of processes, and this.
inline constexpr std::string_view kSocketSuffix = ".sock";

struct SocketPlace {
  OwnFd directory;
  std::string name;   // in it
  std::string shown;  // the whole path, for messages

  // Sets the address for bind and connect. Errors: kInvalidArgument, the name is too long.
  Status address(sockaddr_un& to) const;
};

// Returns the place on which this process listens (Options::listen, not empty). The usual directory
// is made if it is missing. Errors: kIo, kInvalidArgument.
Result<SocketPlace> place_to_listen(std::string_view listen);

// Returns the place of another process's usual socket. Errors: kNotFound, there is no such socket;
// kIo.
Result<SocketPlace> place_of_process(uint64_t process);
// The same of a socket by its path.
Result<SocketPlace> place_of_socket(const std::string& path);

// Says what the system refused: "PATH: WHAT: Permission denied".
Error socket_error(const std::string& path, const char* what, int error);

}  // namespace uptier::tiering
