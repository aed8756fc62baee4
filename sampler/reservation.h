// Reservation: address space that becomes memory where it is touched.
//
// It is not locked where the process locks what it maps (mlockall(MCL_FUTURE)); and what is not open
// yet is no memory for anybody, also not for mlockall(MCL_CURRENT).
//
// What compiled code's slow paths use must not be allocated there (4.12), so it is reserved ahead:
// contexts, slabs and rings are each one anonymous private mapping that is never grown or moved.
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

  // Reserves `bytes` (rounded up to pages), zeroed, and opens all of it. Errors: kResourceExhausted
  // names `what`.
  static Result<Reservation> create(size_t bytes, const char* what);
  // The same, open nowhere.
  static Result<Reservation> create_closed(size_t bytes, const char* what);
  // Makes the first `bytes` usable; returns whether they are. Cost: a comparison, and a system call
  // now and then. Neither allocates nor locks.
  bool open(size_t bytes) noexcept { return bytes <= open_ || open_slow(bytes); }

  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  bool open_slow(size_t bytes) noexcept;

  void* data_ = nullptr;
  size_t size_ = 0;
  size_t open_ = 0;  // bytes from the start that may be used
};

}  // namespace uptier::sampler
