#include "profile/base/write_all.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace uptier::profile {
namespace {

// Returns whether there is a limit at all; there hardly ever is.
bool is_limited() {
  struct rlimit limit;
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

// Blocks SIGXFSZ on this thread, and consumes one that has arrived since. The signal is sent to the
// writing thread, so none of another thread is consumed.
class HeldBack {
 public:
  HeldBack() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGXFSZ);
    sigset_t pending;
    pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    held_ = pthread_sigmask(SIG_BLOCK, &set_, &before_) == 0;
  }
  ~HeldBack() {
    if (!held_) return;
    const struct timespec now = {};
    const int error = errno;
    while (!pending_ && sigtimedwait(&set_, nullptr, &now) < 0 && errno == EINTR) {}
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  HeldBack(const HeldBack&) = delete;
  HeldBack& operator=(const HeldBack&) = delete;

 private:
  sigset_t set_, before_;
  bool pending_ = false;
  bool held_ = false;
};

}  // namespace

ssize_t write_some(int fd, ByteSpan bytes) {
  if (!is_limited()) return ::write(fd, bytes.data(), bytes.size());
  const HeldBack held;
  return ::write(fd, bytes.data(), bytes.size());
}

int write_all(int fd, ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t taken = write_some(fd, bytes);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) return errno;
    if (taken == 0) return EIO;
    bytes = bytes.subspan(static_cast<size_t>(taken));
  }
  return 0;
}

}  // namespace uptier::profile
