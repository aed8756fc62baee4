// MappedFile: a copy of a file's bytes in memory of its own, as long as this lives.
//
// Whoever may write to the file may cut it off, or change it behind a check. So no page of it is
// mapped: what was checked is what is used, and a file that shrinks meanwhile is one that ends early.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "uptier/result.h"

namespace uptier::tiering {

// Identifies a file and its state. Files with equal ids have the same bytes, because time passes between
// two changes that keep the size.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t changed_ns = 0;  // when its bytes were, by the clock of the file system

  static FileId of(const struct stat& info);
  friend bool operator==(const FileId&, const FileId&) = default;
};

class MappedFile {
 public:
  // Errors: kNotFound where there is no such file, kIo for what is no regular file or not readable.
  // Cost: all of it is read.
  static Result<MappedFile> open(const std::string& path);

  // Gives back the memory of some of these bytes; they are zeros from then on.
  void let_go(std::span<const std::byte> part) const;

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  // Which state of which file it was when reading began.
  const FileId& id() const { return id_; }

 private:
  std::span<std::byte> mapped_;       // anonymous memory
  std::span<const std::byte> bytes_;  // what of it was read
  FileId id_;
};

}  // namespace uptier::tiering
