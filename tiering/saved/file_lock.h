// FileLock: the lock of whatever file has a name, for who writes to it; an empty one is made where
// there is none.
//
// The lock is on the file itself, which others may replace while this waits: then it takes the new
// one's. While it is held nobody who takes locks replaces the file, or adds to it.
#pragma once

#include <string>

#include "tiering/saved/mapped_file.h"
#include "uptier/result.h"

namespace uptier::tiering {

class FileLock {
 public:
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  Status status() const;
  // Open for writing at the end of the file, wherever that is by then.
  int fd() const { return fd_; }
  // Which file it is, as it was when the lock was taken.
  const FileId& file() const { return file_; }
  // Takes away the empty file that this made, if it did: nothing came to be in it.
  void take_back() const;

 private:
  void attempt();

  std::string path_;
  int fd_ = -1;
  FileId file_;
  bool made_ = false;
  int error_ = 0;
};

// Waits until nobody writes to a file; does nothing where it cannot be had.
void wait_for_writers(const std::string& path);

}  // namespace uptier::tiering
