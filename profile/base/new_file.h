// NewFile: a file that replaces another one atomically.
//
//   create: a new file next to the old one, mode 0600 --> the caller writes --> replace: rename
//
// Readers of the old file keep it. A file that is not renamed is removed. If something other than a
// regular file has that name, create fails.
//
// A writer that is killed leaves its file, as NAME.tmpN. N is the least free number, and a writer
// holds the lock of its file (flock) until the file has its final name. So the next writer can
// recognize abandoned files, and removes them.
#pragma once

#include <string>

#include "profile/base/bytes.h"
#include "uptier/result.h"

namespace uptier::profile {

// Returns the error of a failed call on a file: path, attempted action, and the text of errno.
Error io_error(const std::string& path, const char* what, int error);

class NewFile {
 public:
  static Result<NewFile> create(const std::string& path);

  NewFile(NewFile&& other) noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  int fd() const { return fd_; }
  // Gives the file its final name; returns 0 or an errno.
  int replace();
  // Releases the descriptor to the caller, who closes it.
  int release();
  // Closes it; returns 0 or an errno, including errors of earlier writes that the file system
  // reports only now. The lock is held until the file has its final name.
  int close();

 private:
  NewFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  void unlock();

  std::string path_;
  std::string temporary_;  // empty once the file has its final name
  int fd_;
  int lock_ = -1;  // a duplicate of the descriptor, after the file was closed
};

}  // namespace uptier::profile
