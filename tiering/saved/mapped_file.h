// MappedFile: a file's bytes, read only, as long as this lives.
//
// Profiles are replaced, never changed in place, so what is mapped stays as it was.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "uptier/result.h"

namespace uptier::tiering {

class MappedFile {
 public:
  // Errors: kNotFound where there is no such file, kIo for what is no regular file or not readable.
  // `whole`: all of it will be read, so that a small one is better read at once than page by page.
  static Result<MappedFile> open(const std::string& path, bool whole = true);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace uptier::tiering
