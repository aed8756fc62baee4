#include "profile/base/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace uptier::profile {
namespace {

// The most concurrent writers of one file, and the numbers up to which to look for files of killed
// ones.
constexpr int kMostWriters = 100;
constexpr int kLookedAt = 16;

int open_file(const std::string& path, int flags) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0600);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// Returns false if another writer holds the lock; true also if the file system has no locks.
bool take_lock(int fd) {
  int locked;
  do { locked = ::flock(fd, LOCK_EX | LOCK_NB); } while (locked != 0 && errno == EINTR);
  return locked == 0 || errno != EWOULDBLOCK;
}

// Creates a file that no writer mistakes for a killed writer's; returns -1 and sets errno if it
// exists.
int make_file(const std::string& path) {
  const int fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (fd < 0) return fd;
  // Before it was locked, a writer that looks for files of killed ones may have removed it.
  struct stat info;
  const bool kept = take_lock(fd) && ::fstat(fd, &info) == 0 && info.st_nlink != 0;
  if (kept) return fd;
  ::close(fd);
  errno = EEXIST;
  return -1;
}

// Removes a file that a killed writer of this user has left.
void remove_left(const std::string& path) {
  const int fd = open_file(path, O_WRONLY | O_NONBLOCK);
  if (fd < 0) return;
  struct stat mine, now;
  const bool ours = ::fstat(fd, &mine) == 0 && S_ISREG(mine.st_mode) && mine.st_uid == ::geteuid();
  const bool left = ours && ::flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                    ::lstat(path.c_str(), &now) == 0 && mine.st_ino == now.st_ino &&
                    mine.st_dev == now.st_dev;
  if (left) ::unlink(path.c_str());
  ::close(fd);
}

}  // namespace

Error io_error(const std::string& path, const char* what, int error) {
  const char* text = strerrordesc_np(error);
  return Error{ErrorCode::kIo, path + ": " + what + ": " +
                                   (text != nullptr ? text : std::to_string(error).c_str())};
}

Result<NewFile> NewFile::create(const std::string& path) {
  struct stat info;
  const bool exists = ::lstat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    const char* link = S_ISLNK(info.st_mode) ? " (it is a symbolic link: name its target)" : "";
    return Error{ErrorCode::kIo, path + ": exists and is not a regular file" + link};
  }
  std::string temporary;
  int fd = -1, error = 0;
  for (int i = 0; i < (fd < 0 ? kMostWriters : kLookedAt); ++i) {
    const std::string name = path + ".tmp" + std::to_string(i);
    if (fd >= 0) {
      remove_left(name);
      continue;
    }
    fd = make_file(name);
    if (fd < 0 && errno == EEXIST) {
      remove_left(name);
      fd = make_file(name);
    }
    error = fd < 0 ? errno : 0;
    if (fd >= 0) temporary = name;
    if (fd < 0 && error != EEXIST) break;
  }
  if (fd < 0) return io_error(path, "cannot create the file", error);
  return NewFile(path, std::move(temporary), fd);
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      lock_(std::exchange(other.lock_, -1)) {}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  (void)close();
  unlock();
}

int NewFile::replace() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return errno;
  temporary_.clear();
  unlock();
  return 0;
}

int NewFile::release() { return std::exchange(fd_, -1); }

int NewFile::close() {
  if (fd_ < 0) return 0;
  if (lock_ < 0 && !temporary_.empty()) lock_ = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  // After EINTR, Linux has closed the descriptor, and closing again could hit another file.
  return ::close(release()) != 0 && errno != EINTR ? errno : 0;
}

void NewFile::unlock() {
  const int fd = std::exchange(lock_, -1);
  if (fd >= 0) ::close(fd);
}

}  // namespace uptier::profile
