// Reservation: address space that becomes memory where it is touched.
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
      : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  Reservation& operator=(Reservation&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~Reservation();

  // Reserves `bytes` (rounded up to pages), zeroed. Errors: kResourceExhausted names `what`.
  static Result<Reservation> create(size_t bytes, const char* what);

  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace uptier::sampler
