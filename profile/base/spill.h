// Spill: bytes that wait in a file without a name, in the order in which they came.
//
// Nobody else sees the file, and it is gone when this is, or the process, however it ends. What
// cannot be written is told when the bytes are asked for.
//
//   Thread: one at a time.
#pragma once

#include <functional>
#include <string>

#include "profile/base/bytes.h"
#include "uptier/result.h"

namespace uptier::profile {

class Spill {
 public:
  // Makes the file in this folder. Error: kIo where that cannot be.
  static Result<Spill> create(const std::string& folder);

  Spill(Spill&& other) noexcept;
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;
  ~Spill();

  void append(ByteSpan bytes);
  // Hands over all bytes, piece by piece, until `take` returns an errno. Returns that, or the errno
  // of what went wrong here, or 0. May be asked again.
  int each(const std::function<int(ByteSpan)>& take) const;

 private:
  explicit Spill(int fd) : fd_(fd) {}

  int fd_;
  uint64_t size_ = 0;
  int error_ = 0;
};

}  // namespace uptier::profile
