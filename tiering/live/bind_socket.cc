#include "tiering/live/bind_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <utility>

namespace uptier::tiering {
namespace {

constexpr int kWaiting = 8;  // connections that wait to be let in

// Removes the socket that has the name, if nobody listens on it any more.
Status remove_abandoned(const SocketPlace& place) {
  struct stat info {};
  const int directory = place.directory.get();
  const bool there = ::fstatat(directory, place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && !S_ISSOCK(info.st_mode)) {
    return Error{
        ErrorCode::kIo,
        place.shown + ": a file that is no socket has this name; remove it or name another"};
  }
  const OwnFd probe = new_socket();
  if (!probe) return socket_error(place.shown, "cannot make a socket", errno);
  if (connect_to(place, probe) != ECONNREFUSED) {
    return Error{ErrorCode::kIo, place.shown +
                                     ": somebody listens on this socket already, another "
                                     "process or another runtime of this one; name "
                                     "another"};
  }
  if (::unlinkat(directory, place.name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return socket_error(place.shown, "cannot replace the socket of a process that has ended", errno);
}

}  // namespace

OwnFd new_socket() {
  return OwnFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int connect_to(const SocketPlace& place, const OwnFd& socket) {
  sockaddr_un to;
  if (!place.address(to)) return ENAMETOOLONG;
  const auto* address = reinterpret_cast<const sockaddr*>(&to);
  return ::connect(socket.get(), address, sizeof to) == 0 ? 0 : errno;
}

// A socket's file gets the mode that the socket has when it is bound.
Result<BoundSocket> bind_socket(const SocketPlace& place) {
  sockaddr_un at;
  if (Status s = place.address(at); !s) return s.error();
  BoundSocket bound{new_socket()};
  const bool own = bound.fd && ::fchmod(bound.fd.get(), 0600) == 0;
  if (!own) return socket_error(place.shown, "cannot make a socket", errno);
  const auto* address = reinterpret_cast<const sockaddr*>(&at);
  int error = ::bind(bound.fd.get(), address, sizeof at) == 0 ? 0 : errno;
  if (error == EADDRINUSE) {
    if (Status s = remove_abandoned(place); !s) return s.error();
    error = ::bind(bound.fd.get(), address, sizeof at) == 0 ? 0 : errno;
  }
  if (error != 0) return socket_error(place.shown, "cannot bind the socket", error);
  struct stat info {};
  const bool found =
      ::fstatat(place.directory.get(), place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  if (!found || ::listen(bound.fd.get(), kWaiting) != 0) {
    error = errno;
    ::unlinkat(place.directory.get(), place.name.c_str(), 0);
    return socket_error(place.shown, "cannot listen on the socket", error);
  }
  bound.inode = info.st_ino;
  return bound;
}

}  // namespace uptier::tiering
