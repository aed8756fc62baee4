#include "sampler/reservation.h"

#include <sys/mman.h>

#include <cstring>
#include <string>

namespace uptier::sampler {

Result<Reservation> Reservation::create(size_t bytes, const char* what) {
  bytes = (bytes + 4095) & ~size_t{4095};
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    return Error{ErrorCode::kResourceExhausted,
                 std::string(what) + ": no address space for " + std::to_string(bytes) + " bytes"};
  }
  Reservation r;
  r.data_ = p;
  r.size_ = bytes;
  return r;
}

Reservation::~Reservation() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace uptier::sampler
