#include "profile/base/write_all.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

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

namespace {

static_assert(sizeof(Piece) == sizeof(struct iovec) &&
              offsetof(Piece, data) == offsetof(struct iovec, iov_base) &&
              offsetof(Piece, bytes) == offsetof(struct iovec, iov_len));

constexpr size_t kBatch = 256;  // pieces of one system call; the kernel takes 1,024

ssize_t write_batch(int fd, const struct iovec* batch, size_t count) {
  if (!is_limited()) return ::writev(fd, batch, static_cast<int>(count));
  const HeldBack held;
  return ::writev(fd, batch, static_cast<int>(count));
}

}  // namespace

int write_pieces(int fd, std::span<const Piece> pieces) {
  size_t skip = 0;  // bytes of the first piece that are written
  while (!pieces.empty()) {
    struct iovec batch[kBatch];
    const size_t count = std::min(pieces.size(), kBatch);
    for (size_t i = 0; i < count; ++i) {
      batch[i] = {const_cast<void*>(pieces[i].data), pieces[i].bytes};
    }
    batch[0].iov_base = static_cast<std::byte*>(batch[0].iov_base) + skip;
    batch[0].iov_len -= skip;
    const ssize_t taken = write_batch(fd, batch, count);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) return errno;
    if (taken == 0 && batch[0].iov_len != 0) return EIO;
    skip += static_cast<size_t>(taken);
    while (!pieces.empty() && skip >= pieces.front().bytes) {
      skip -= pieces.front().bytes;
      pieces = pieces.subspan(1);
    }
  }
  return 0;
}

}  // namespace uptier::profile
