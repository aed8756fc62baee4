#include "tiering/saved/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <ctime>

#include "profile/base/new_file.h"

namespace uptier::tiering {
namespace {

constexpr int kTries = 1000;
constexpr uint64_t kNsInMs = 1'000'000;
constexpr uint64_t kFirstPauseNs = kNsInMs / 4;
constexpr uint64_t kLongestPauseNs = 20 * kNsInMs;

uint64_t steady_ns() {
  struct timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t end_of(uint64_t limit_ms) { return steady_ns() + limit_ms * kNsInMs; }

// Returns 0 or an errno; EWOULDBLOCK if another process holds the lock until the end. It polls,
// because only a signal could end a blocking call.
int lock(int fd, int how, uint64_t end_ns) {
  for (uint64_t pause = kFirstPauseNs;; pause = std::min(2 * pause, kLongestPauseNs)) {
    if (::flock(fd, how | LOCK_NB) == 0) return 0;
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return errno;
    const uint64_t now = steady_ns();
    if (now >= end_ns) return EWOULDBLOCK;
    pause = std::min(pause, end_ns - now);
    const struct timespec wait = {0, static_cast<long>(pause)};
    (void)::nanosleep(&wait, nullptr);
  }
}

}  // namespace

FileLock::FileLock(const std::string& path, uint64_t limit_ms, Missing missing)
    : path_(path), limit_ms_(limit_ms), missing_(missing), end_ns_(end_of(limit_ms)) {
  for (int tries = 0; tries < kTries && fd_ < 0 && error_ == 0; ++tries) attempt();
  if (fd_ < 0 && error_ == 0) error_ = EBUSY;
  assert((fd_ >= 0) == (error_ == 0));
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

void FileLock::take_back() const {
  assert(fd_ >= 0);  // the lock is held
  if (made_) ::unlink(path_.c_str());
}

Status FileLock::status() const {
  if (error_ == 0) return {};
  // The file would have been created, so its folder is missing.
  if (error_ == ENOENT && missing_ == Missing::kNone) {
    return Error{ErrorCode::kNotFound, path_ + ": there is no such file"};
  }
  if (error_ == EWOULDBLOCK) {
    return Error{ErrorCode::kIo,
                 path_ + ": cannot lock the file: another process has held it for " +
                     std::to_string(limit_ms_) + " ms, the limit of option profile_lock_ms"};
  }
  if (error_ == ELOOP) {
    return Error{ErrorCode::kIo, path_ +
                                     ": it is a symbolic link that leads to no file, or is not "
                                     "followed here; name the file itself"};
  }
  return profile::io_error(path_, "cannot lock the file", error_);
}

void FileLock::attempt() {
  assert(fd_ < 0 && error_ == 0);
  constexpr int kFlags = O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  int fd = ::open(path_.c_str(), kFlags);
  bool made = fd < 0 && errno == ENOENT && missing_ == Missing::kMade;
  if (made) fd = ::open(path_.c_str(), kFlags | O_CREAT | O_EXCL, 0600);
  if (fd < 0) {
    bool again = errno == EINTR || (made && errno == EEXIST);
    if (!again) error_ = errno;
    return;
  }
  error_ = lock(fd, LOCK_EX, end_ns_);
  // Was the file replaced while this waited?
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

void wait_for_writers(const std::string& path, uint64_t limit_ms) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  (void)lock(fd, LOCK_SH, end_of(limit_ms));
  ::close(fd);
}

}  // namespace uptier::tiering
