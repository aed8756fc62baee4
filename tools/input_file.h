// InputFile: the bytes of one file after the other.
//
// A small file is read into a buffer that stays, which costs a fifth of memory of its own: no page
// tables, no faults, nothing to take back. A large one gets that (MappedFile).
//
//   Thread: one at a time.
#pragma once

#include <string>
#include <vector>

#include "profile/base/bytes.h"
#include "tiering/saved/mapped_file.h"

namespace uptier::tools {

class InputFile {
 public:
  // Identifies a file and its contents: a later file of the same name, or later contents, differ.
  struct Identity {
    uint64_t device = 0, number = 0, size = 0;
    int64_t seconds = 0, nanoseconds = 0;  // when it was changed

    friend bool operator==(const Identity&, const Identity&) = default;
  };
  // Files up to this size are read into the buffer.
  static constexpr size_t kSmall = 256 << 10;

  // Lets go of the file before, whose bytes are gone then.
  Status open(const std::string& path);
  profile::ByteSpan bytes() const { return bytes_; }
  const Identity& identity() const { return identity_; }
  // Lets go of all, the buffer too.
  void close() { *this = InputFile(); }
  // Gives back the memory of some of these bytes, where that can be: nobody asks for them again.
  void let_go(profile::ByteSpan part) const;

 private:
  profile::Bytes buffer_;
  tiering::MappedFile mapped_;
  profile::ByteSpan bytes_;
  Identity identity_;
};

}  // namespace uptier::tools
