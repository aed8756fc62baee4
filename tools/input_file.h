// InputFile: the bytes of one file after the other.
//
// A small file is read into a buffer that stays, which costs a fifth of mapping it: no page tables,
// no faults, nothing to take back. A large one is mapped.
//
//   Thread: one at a time.
#pragma once

#include <string>
#include <vector>

#include "profile/bytes.h"
#include "tiering/saved/mapped_file.h"

namespace uptier::tools {

class InputFile {
 public:
  // Lets go of the file before, whose bytes are gone then.
  Status open(const std::string& path);
  profile::ByteSpan bytes() const { return bytes_; }

 private:
  profile::Bytes buffer_;
  tiering::MappedFile mapped_;
  profile::ByteSpan bytes_;
};

}  // namespace uptier::tools
