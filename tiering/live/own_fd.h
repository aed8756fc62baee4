// OwnFd: a file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace uptier::tiering {

class OwnFd {
 public:
  explicit OwnFd(int fd = -1) : fd_(fd) {}
  ~OwnFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  OwnFd(OwnFd&& o) noexcept : fd_(o.release()) {}
  OwnFd& operator=(OwnFd&& o) noexcept {
    OwnFd old(std::exchange(fd_, o.release()));
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Returns the descriptor, which the caller closes.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace uptier::tiering
