// AppendFile: a file of records that other tools read while it grows.
//
// The file contains a record as a whole or not at all: if the disk is full, the written part of a
// record is removed, and if that is refused, nothing more is written.
//
//   Thread: one at a time.
#pragma once

#include <unistd.h>

#include <cerrno>

#include "profile/base/write_all.h"

namespace uptier::jit {

class AppendFile {
 public:
  // Owns `fd`, whose position is the end of the file.
  explicit AppendFile(int fd) : fd_(fd) {}
  ~AppendFile() { close(fd_); }
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Returns whether the record is in the file. If not, `errno` says why.
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
