// NewFile: a file that takes the place of another at once.
//
//   create: a new file beside the old one, mode 0600 --> the caller writes --> replace: rename
//
// Readers of the old file keep it. What is not renamed is removed. Anything but a regular file of
// that name is refused.
#pragma once

#include <string>

#include "profile/bytes.h"
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
  // Closes it; returns 0 or an errno.
  int close();

 private:
  NewFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

  std::string path_;
  std::string temporary_;  // empty once it has the name
  int fd_;
};

}  // namespace uptier::profile
