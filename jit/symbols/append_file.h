// AppendFile: a file of records that other tools read while it grows.
//
// A record is in it as a whole or not at all: where the disk is full, what was written of one is
// taken back, and where that is refused nothing more is written.
//
//   Thread: one at a time.
#pragma once

#include <unistd.h>

#include <cerrno>

#include "profile/base/write_all.h"

namespace uptier::jit {

class AppendFile {
 public:
  // Owns `fd`, which stands at the end.
  explicit AppendFile(int fd) : fd_(fd) {}
  ~AppendFile() { close(fd_); }
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Returns whether the record is in the file. `errno` says why not.
  bool append(profile::ByteSpan record) {
    if (torn_) return false;
    const off_t at = lseek(fd_, 0, SEEK_CUR);
    const int error = profile::write_all(fd_, record);
    if (error == 0) return true;
    torn_ = at < 0 || ftruncate(fd_, at) != 0 || lseek(fd_, at, SEEK_SET) != at;
    errno = error;
    return false;
  }

 private:
  int fd_;
  bool torn_ = false;
};

}  // namespace uptier::jit
