// MappedFile: a copy of a file's bytes in its own memory, for the lifetime of this object.
//
// A process that may write to the file could truncate it, or change it after a check. So no page of
// it is mapped: the checked bytes are the used bytes, and a file that shrinks meanwhile just ends
// early.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "uptier/result.h"

namespace uptier::tiering {

// Identifies a file and its state. Files with equal ids have the same bytes, because time passes
// between two changes that keep the size.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t changed_ns = 0;  // time of the last change to its bytes, by the clock of the file system

  static FileId of(const struct stat& info);
  friend bool operator==(const FileId&, const FileId&) = default;
};

class MappedFile {
 public:
  // Errors: kNotFound if there is no such file, kIo if it is not a regular file or not readable.
  // Cost: reads the whole file.
  static Result<MappedFile> open(const std::string& path);

  // Gives back the memory of some of these bytes; they are zeros from then on.
  void let_go(std::span<const std::byte> part) const;

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  // The file and its state when reading began.
  const FileId& id() const { return id_; }

 private:
  std::span<std::byte> mapped_;       // anonymous memory
  std::span<const std::byte> bytes_;  // the part that was read
  FileId id_;
};

}  // namespace uptier::tiering
