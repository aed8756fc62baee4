// FileLock: locks a file by name, for writing; creates an empty file if there is none.
//
// The lock is on the file itself, which other processes may replace while this one waits: then it
// takes the lock of the new file. While it is held, no process that uses locks replaces the file or
// adds to it. Any process that can read the file can hold the lock for ever, so the wait is limited
// (Options::profile_lock_ms).
#pragma once

#include <cstdint>
#include <string>

#include "tiering/saved/mapped_file.h"
#include "uptier/result.h"

namespace uptier::tiering {

class FileLock {
 public:
  // `limit_ms`: how long to wait for another process; 0: do not wait. An empty file is created only
  // if `missing` allows it; otherwise a missing file makes status() kNotFound.
  enum class Missing : uint8_t { kMade, kNone };
  FileLock(const std::string& path, uint64_t limit_ms, Missing missing = Missing::kMade);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  Status status() const;
  // Opened for writing at the current end of the file.
  int fd() const { return fd_; }
  // The identity of the file when the lock was taken.
  const FileId& file() const { return file_; }
  // Removes the empty file if this object created it and nothing was written.
  void take_back() const;

 private:
  void attempt();

  std::string path_;
  uint64_t limit_ms_;
  Missing missing_;
  uint64_t end_ns_;  // the end of the wait
  int fd_ = -1;
  FileId file_;
  bool made_ = false;
  int error_ = 0;
};

// Waits until no process writes to a file, or so long; does nothing if the lock cannot be had.
void wait_for_writers(const std::string& path, uint64_t limit_ms);

}  // namespace uptier::tiering
