#include "tiering/live/socket_place.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace uptier::tiering {
namespace {

constexpr mode_t kOwnerOnly = 0700;

std::string file_of(uint64_t process) {
  return std::to_string(process) + std::string(kSocketSuffix);
}

// Opens a directory and checks that it is this user's alone.
Result<OwnFd> open_private(const std::string& path) {
  OwnFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    const bool link = errno == ELOOP || errno == ENOTDIR;
    if (errno == ENOENT) {
      return Error{ErrorCode::kNotFound,
                   path + ": there is no such directory for the socket; mkdir -m 700 makes it"};
    }
    if (!link) return socket_error(path, "cannot open the directory of the socket", errno);
    return Error{ErrorCode::kIo, path +
                                     ": the directory of a socket must be a directory itself, "
                                     "neither a link nor another file; name one"};
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return socket_error(path, "cannot be examined", errno);
  if (info.st_uid != ::geteuid()) {
    return Error{ErrorCode::kIo, path +
                                     ": the directory of a socket must belong to its user; this "
                                     "one belongs to user " +
                                     std::to_string(info.st_uid) + "; remove it or name another"};
  }
  if ((info.st_mode & 077) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "0%o", info.st_mode & 0777);
    return Error{ErrorCode::kIo, path +
                                     ": the directory of a socket must be closed to others; its "
                                     "mode is " +
                                     mode + "; chmod 700 closes it"};
  }
  return fd;
}

// Directories in which sockets lie by default, the preferred one first.
std::vector<std::string> usual_directories() {
  std::vector<std::string> list;
  const char* runtime = ::secure_getenv("XDG_RUNTIME_DIR");
  struct stat info {};
  const bool own = runtime != nullptr && runtime[0] == '/' && ::stat(runtime, &info) == 0 &&
                   S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
  if (own) list.push_back(std::string(runtime) + "/uptier");
  list.push_back("/tmp/uptier-" + std::to_string(::geteuid()));
  return list;
}

Result<SocketPlace> place_by_path(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash + 1 == path.size()) {
    return Error{ErrorCode::kInvalidArgument,
                 "\"" + path + "\" is not the path of a socket, such as /run/own/it.sock"};
  }
  // A "/" at the end would follow a link.
  Result<OwnFd> directory = open_private(slash == 0 ? "/" : path.substr(0, slash));
  if (!directory) return directory.error();
  return SocketPlace{std::move(*directory), path.substr(slash + 1), path};
}

Status check_socket(const SocketPlace& place) {
  struct stat info {};
  if (::fstatat(place.directory.get(), place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return socket_error(place.shown, "cannot find the socket", errno);
  }
  if (S_ISSOCK(info.st_mode)) return {};
  return Error{ErrorCode::kIo, place.shown + ": it is not a socket"};
}

}  // namespace

Error socket_error(const std::string& path, const char* what, int error) {
  const char* text = ::strerrordesc_np(error);
  return {error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
          path + ": " + what + ": " + (text != nullptr ? text : std::to_string(error))};
}

// By the opened directory: it may be renamed, and its path may be too long for an address.
Status SocketPlace::address(sockaddr_un& to) const {
  const std::string path = "/proc/self/fd/" + std::to_string(directory.get()) + "/" + name;
  to = {};
  to.sun_family = AF_UNIX;
  if (path.size() >= sizeof to.sun_path) {
    return Error{ErrorCode::kInvalidArgument,
                 shown + ": the name of the socket is too long; shorten it to 80 characters"};
  }
  std::memcpy(to.sun_path, path.c_str(), path.size() + 1);
  return {};
}

Result<SocketPlace> place_to_listen(std::string_view listen) {
  if (listen != "on") return place_by_path(std::string(listen));
  const std::string directory = usual_directories().front();
  if (::mkdir(directory.c_str(), kOwnerOnly) != 0 && errno != EEXIST) {
    return socket_error(directory, "cannot make the directory of the socket", errno);
  }
  return place_by_path(directory + "/" + file_of(static_cast<uint64_t>(::getpid())));
}

Result<SocketPlace> place_of_process(uint64_t process) {
  Error missing{ErrorCode::kNotFound, ""};
  std::vector<std::string> directories = usual_directories();
  // A shell of cron or sudo does not know the variable that the process was started with.
  directories.push_back("/run/user/" + std::to_string(::geteuid()) + "/uptier");
  for (const std::string& directory : directories) {
    Result<SocketPlace> place = place_by_path(directory + "/" + file_of(process));
    const Status there = place ? check_socket(*place) : Status(place.error());
    if (there) return place;
    if (there.error().code != ErrorCode::kNotFound) return there.error();
    missing = there.error();
  }
  return missing;
}

Result<SocketPlace> place_of_socket(const std::string& path) {
  Result<SocketPlace> place = place_by_path(path);
  if (!place) return place;
  if (Status s = check_socket(*place); !s) return s.error();
  return place;
}

}  // namespace uptier::tiering
