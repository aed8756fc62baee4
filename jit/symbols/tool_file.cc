#include "jit/symbols/tool_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace uptier::jit {
namespace {

constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;

Error refused(const std::string& path, const std::string& why) {
  return Error{ErrorCode::kIo, path + ": " + why};
}

// Removes an old file, or says why it cannot be removed.
Status remove_old(const std::string& path) {
  const int fd = open(path.c_str(), kFlags | O_NONBLOCK);
  if (fd < 0) return refused(path, std::strerror(errno));
  struct stat mine, now;
  const bool ours = fstat(fd, &mine) == 0 && S_ISREG(mine.st_mode) && mine.st_uid == geteuid();
  const bool held = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  const bool same = lstat(path.c_str(), &now) == 0 && mine.st_ino == now.st_ino;
  Status status;
  if (!ours) {
    status = refused(path, "exists, and is no regular file of this user's");
  } else if (held) {
    status = refused(path, "exists, and another runtime writes to it");
  } else if (same && unlink(path.c_str()) != 0) {
    status = refused(path, std::string("an old one cannot be removed: ") + std::strerror(errno));
  }
  close(fd);
  return status;
}

}  // namespace

Result<int> create_tool_file(const std::string& path) {
  int fd = open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0600);
  if (fd < 0 && errno == EEXIST) {
    if (Status s = remove_old(path); !s) return s.error();
    fd = open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0600);
  }
  if (fd < 0) return refused(path, std::strerror(errno));
  // If the lock is refused, another process holds it to remove the file as an old one; both
  // continue.
  (void)flock(fd, LOCK_EX | LOCK_NB);
  return fd;
}

}  // namespace uptier::jit
