// MappedFile: a file's bytes, read only, as long as this lives.
//
// Profiles are replaced, or something is added behind their end; what is mapped stays as it was.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "uptier/result.h"

namespace uptier::tiering {

// Which file it is, and which state of it: equal ones have the same bytes, since time passes between
// two changes of one size.
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
  // `whole`: all of it will be read, so that a small one is better read at once than page by page.
  static Result<MappedFile> open(const std::string& path, bool whole = true);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept : bytes_(other.bytes_), id_(other.id_) {
    other.bytes_ = {};
  }
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const FileId& id() const { return id_; }

 private:
  std::span<const std::byte> bytes_;
  FileId id_;
};

}  // namespace uptier::tiering
