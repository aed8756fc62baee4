// TrustedFile: the content of a file that may become code, read into memory once.
//
// Law: nobody but this user and root could have written it. It is a regular file, opened without
// following a link, owned by the effective user or root, and not writable by group or others; its
// folder likewise. What is checked and used afterwards is the copy in memory, so it does not matter
// what happens to the file meanwhile.
//
//   Thread: any; constant.
#pragma once

#include <cstddef>
#include <string>

#include "profile/base/bytes.h"
#include "uptier/result.h"

namespace uptier::tiering {

class TrustedFile {
 public:
  // Errors: kNotFound if there is no file; kInvalidInput with the rule that it breaks; kIo;
  // kResourceExhausted if it is larger than `most` bytes, or memory is refused. Messages begin with
  // the path.
  static Result<TrustedFile> read(const std::string& path, uint64_t most);

  TrustedFile() = default;
  TrustedFile(TrustedFile&& other) noexcept;
  TrustedFile& operator=(TrustedFile&& other) noexcept;
  ~TrustedFile();

  profile::ByteSpan bytes() const { return bytes_; }

 private:
  std::span<std::byte> mapped_;
  profile::ByteSpan bytes_;
};

}  // namespace uptier::tiering
