// NewFile: a file that takes the place of another at once.
//
//   create: a new file beside the old one, mode 0600 --> the caller writes --> replace: rename
//
// Readers of the old file keep it. What is not renamed is removed. Anything but a regular file of
// that name is refused.
//
// A writer that is killed leaves its file behind, as NAME.tmpN. N is the least number that is free,
// and a writer holds the lock of its file (flock) until it has its name, so whoever comes next can
// tell what nobody writes any more, and removes it.
#pragma once

#include <string>

#include "profile/base/bytes.h"
#include "uptier/result.h"

namespace uptier::profile {

// Returns the error of a failed call on a file: path, what was tried, and what errno says.
Error io_error(const std::string& path, const char* what, int error);

class NewFile {
 public:
  static Result<NewFile> create(const std::string& path);

  NewFile(NewFile&& other) noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  int fd() const { return fd_; }
  // Gives the file the name; returns 0 or an errno.
  int replace();
  // Hands over the descriptor, which the caller closes.
  int release();
  // Closes it; returns 0 or an errno, also of what the file system could not write before. Its lock
  // is held until it has the name.
  int close();

 private:
  NewFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  void unlock();

  std::string path_;
  std::string temporary_;  // empty once it has the name
  int fd_;
  int lock_ = -1;  // another descriptor of it, once it was closed
};

}  // namespace uptier::profile
