// Spill: bytes kept in an unnamed file, in the order in which they were appended.
//
// No other process sees the file. It disappears with this object, or with the process, however that
// ends. Write errors are reported by each().
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
  // Creates the file in this folder. Error: kIo if that fails.
  static Result<Spill> create(const std::string& folder);

  Spill(Spill&& other) noexcept;
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;
  ~Spill();

  void append(ByteSpan bytes);
  // Passes all bytes, piece by piece, to `take` until it returns an errno. Returns that errno, or
  // the errno of a failure here, or 0. May be called again.
  int each(const std::function<int(ByteSpan)>& take) const;

 private:
  explicit Spill(int fd) : fd_(fd) {}

  int fd_;
  uint64_t size_ = 0;
  int error_ = 0;
};

}  // namespace uptier::profile
