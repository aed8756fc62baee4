#include "sampler/reservation.h"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <string>

namespace uptier::sampler {
namespace {

constexpr size_t kStep = 256 << 10;  // bytes opened at a time

Error refused(size_t bytes, const char* what) {
  return {ErrorCode::kResourceExhausted, std::string(what) + ": no address space for " +
                                             std::to_string(bytes) +
                                             " bytes (see `ulimit -v` and vm.overcommit_memory)"};
}

}  // namespace

Result<Reservation> Reservation::create_closed(size_t bytes, const char* what) {
  bytes = (bytes + 4095) & ~size_t{4095};
  void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return refused(bytes, what);
  // Otherwise a process that locks its mappings would have all of it in memory as soon as it is
  // opened.
  (void)munlock(p, bytes);
  Reservation r;
  r.data_ = p;
  r.size_ = bytes;
  return r;
}

Result<Reservation> Reservation::create(size_t bytes, const char* what) {
  Result<Reservation> r = create_closed(bytes, what);
  if (r && !r->open(r->size())) return refused(bytes, what);
  return r;
}

bool Reservation::open_slow(size_t bytes) noexcept {
  assert(data_ != nullptr && open_ <= size_);
  if (bytes > size_) return false;
  size_t to = std::min(size_, (bytes + kStep - 1) / kStep * kStep);
  assert(to > open_);  // open memory stays open
  char* from = static_cast<char*>(data_) + open_;
  if (mprotect(from, to - open_, PROT_READ | PROT_WRITE) != 0) return false;
  open_ = to;
  return true;
}

Reservation::~Reservation() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace uptier::sampler
