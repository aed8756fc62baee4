// Reservation: address space that becomes memory when it is touched.
//
// It is not locked in memory even if the process locks its mappings (mlockall(MCL_FUTURE)). The
// part that is not open yet uses no memory, even with mlockall(MCL_CURRENT).
//
// Slow paths of compiled code must not allocate (4.12), so their memory is reserved in advance:
// each context, slab arena and ring is one anonymous private mapping that never grows or moves.
#pragma once

#include <cstddef>
#include <utility>

#include "uptier/result.h"

namespace uptier::sampler {

class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)),
        size_(std::exchange(o.size_, 0)),
        open_(std::exchange(o.open_, 0)) {}
  Reservation& operator=(Reservation&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    std::swap(open_, o.open_);
    return *this;
  }
  ~Reservation();

  // Reserves `bytes` (rounded up to pages) of zeroed memory and opens all of it. Errors:
  // kResourceExhausted, with `what` in the message.
  static Result<Reservation> create(size_t bytes, const char* what);
  // The same, but nothing is open.
  static Result<Reservation> create_closed(size_t bytes, const char* what);
  // Makes the first `bytes` usable; returns whether they are. Cost: a comparison, and an occasional
  // system call. Neither allocates nor locks.
  bool open(size_t bytes) noexcept { return bytes <= open_ || open_slow(bytes); }

  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  bool open_slow(size_t bytes) noexcept;

  void* data_ = nullptr;
  size_t size_ = 0;
  size_t open_ = 0;  // usable bytes from the start
};

}  // namespace uptier::sampler
