#include "tiering/saved/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "profile/upf/new_file.h"

namespace uptier::tiering {
namespace {

constexpr int kTries = 1000;

// Returns 0 or an errno.
int lock(int fd, int how) {
  int locked;
  do { locked = ::flock(fd, how); } while (locked != 0 && errno == EINTR);
  return locked != 0 ? errno : 0;
}

}  // namespace

FileLock::FileLock(const std::string& path) : path_(path) {
  for (int tries = 0; tries < kTries && fd_ < 0 && error_ == 0; ++tries) attempt();
  if (fd_ < 0 && error_ == 0) error_ = EBUSY;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

void FileLock::take_back() const {
  if (made_) ::unlink(path_.c_str());
}

Status FileLock::status() const {
  if (error_ == 0) return {};
  return profile::io_error(path_, "cannot lock the file", error_);
}

void FileLock::attempt() {
  constexpr int kFlags = O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  int fd = ::open(path_.c_str(), kFlags);
  bool made = fd < 0 && errno == ENOENT;
  if (made) fd = ::open(path_.c_str(), kFlags | O_CREAT | O_EXCL, 0600);
  if (fd < 0) {
    bool again = errno == EINTR || (made && errno == EEXIST);
    if (!again) error_ = errno;
    return;
  }
  error_ = lock(fd, LOCK_EX);
  // Replaced while this waited?
  struct stat mine, now;
  bool same = error_ == 0 && ::fstat(fd, &mine) == 0 && ::lstat(path_.c_str(), &now) == 0 &&
              mine.st_ino == now.st_ino && mine.st_dev == now.st_dev;
  if (same) {
    fd_ = fd;
    file_ = FileId::of(mine);
    made_ = made;
  } else {
    ::close(fd);
  }
}

void wait_for_writers(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  (void)lock(fd, LOCK_SH);
  ::close(fd);
}

}  // namespace uptier::tiering
