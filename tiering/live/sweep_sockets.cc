#include "tiering/live/sweep_sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "tiering/live/bind_socket.h"

namespace uptier::tiering {
namespace {

// Says whether a file is named like the socket of a process that does not exist here.
bool is_of_nobody(std::string_view name) {
  pid_t process = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
  if (error != std::errc() || process <= 0) return false;
  name.remove_prefix(static_cast<size_t>(end - name.data()));
  return name == kSocketSuffix && ::kill(process, 0) != 0 && errno == ESRCH;
}

bool is_socket(int directory, const char* name) {
  struct stat info {};
  return ::fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(info.st_mode);
}

std::vector<std::string> names_in(int directory) {
  std::vector<std::string> names;
  const int own = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* all = own < 0 ? nullptr : ::fdopendir(own);
  if (all == nullptr) {
    if (own >= 0) ::close(own);
    return names;
  }
  while (const dirent* entry = ::readdir(all)) {
    const bool left = is_of_nobody(entry->d_name) && is_socket(directory, entry->d_name);
    if (left) names.emplace_back(entry->d_name);
  }
  ::closedir(all);
  return names;
}

}  // namespace

// A process may live where its id is not seen from here, in another container: it answers, then.
void sweep_sockets(const SocketPlace& place) {
  const int directory = place.directory.get();
  for (std::string& name : names_in(directory)) {
    const OwnFd probe = new_socket();
    const SocketPlace other{OwnFd(::fcntl(directory, F_DUPFD_CLOEXEC, 0)), std::move(name), ""};
    if (!probe || !other.directory || connect_to(other, probe) != ECONNREFUSED) continue;
    ::unlinkat(directory, other.name.c_str(), 0);
  }
}

}  // namespace uptier::tiering
