// FileLock: the lock of whatever file has a name, for who writes to it; an empty one is made where
// there is none.
//
// The lock is on the file itself, which others may replace while this waits: then it takes the new
// one's. While it is held nobody who takes locks replaces the file, or adds to it. Whoever can read
// the file can hold it for ever, so waiting has an end (Options::profile_lock_ms).
#pragma once

#include <cstdint>
#include <string>

#include "tiering/saved/mapped_file.h"
#include "uptier/result.h"

namespace uptier::tiering {

class FileLock {
 public:
  // `limit_ms`: to wait for another process; 0 asks once. An empty file is made only if it may
  // be (`Missing`); without it, status() is kNotFound.
  enum class Missing : uint8_t { kMade, kNone };
  FileLock(const std::string& path, uint64_t limit_ms, Missing missing = Missing::kMade);
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
  uint64_t limit_ms_;
  Missing missing_;
  uint64_t end_ns_;  // by when it must be had
  int fd_ = -1;
  FileId file_;
  bool made_ = false;
  int error_ = 0;
};

// Waits until nobody writes to a file, or so long; does nothing where it cannot be had.
void wait_for_writers(const std::string& path, uint64_t limit_ms);

}  // namespace uptier::tiering
