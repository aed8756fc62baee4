// raw_client.h: a client of a socket that may say anything.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

namespace uptier::test {

class RawClient {
 public:
  explicit RawClient(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    EXPECT_LT(path.size(), sizeof to.sun_path);
    std::strncpy(to.sun_path, path.c_str(), sizeof to.sun_path - 1);
    error_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
  }
  ~RawClient() { ::close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  int error() const { return error_; }  // of the connection; 0: connected
  int fd() const { return fd_; }
  void say(std::string_view words) {
    EXPECT_EQ(::send(fd_, words.data(), words.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(words.size()));
  }
  // Reads until there are `most` bytes, the other side ends, or nothing has come for `ms`.
  std::string hear(int ms = 5000, size_t most = SIZE_MAX) {
    std::string all;
    char bytes[4096];
    ended_ = false;
    while (all.size() < most) {
      pollfd in{fd_, POLLIN, 0};
      if (::poll(&in, 1, ms) <= 0) return all;
      const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
      ended_ = n <= 0;
      if (ended_) return all;
      all.append(bytes, static_cast<size_t>(n));
    }
    return all;
  }
  bool ended() const { return ended_; }

 private:
  int fd_;
  int error_ = 0;
  bool ended_ = false;
};

}  // namespace uptier::test
