#include "embed/wasm/memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace uptier::wasm {
namespace {

// A fence, 4 GiB of index, 4 GiB of offset, and room for the widest access at the very end.
constexpr uint64_t kReservation = kFenceBytes + (uint64_t{8} << 30) + kPageSize;
// The other fence takes the last possible page.
constexpr uint32_t kMaxFencedPages = kMaxPages - kFenceBytes / kPageSize;

}  // namespace

Bounds bounds_of(const Limits& limits, uint32_t max_pages, Bounds wanted) {
  const uint64_t most = std::min<uint64_t>(limits.max.value_or(limits.min), max_pages);
  return wanted == Bounds::kGuarded && most > kMaxFencedPages ? Bounds::kUnfenced : wanted;
}

Result<std::unique_ptr<Memory>> Memory::create(const Limits& limits, uint32_t max_pages,
                                               Bounds wanted, MemoryBudget* budget) {
  std::unique_ptr<Memory> m(new Memory);
  m->budget_ = budget;
  uint64_t declared = limits.max.value_or(kMaxPages);
  m->max_ = limits.max;
  m->page_limit_ =
      static_cast<uint32_t>(std::min<uint64_t>(declared, std::min(max_pages, kMaxPages)));
  m->bounds_ = bounds_of(limits, max_pages, wanted);
  if (limits.min > m->page_limit_) {
    return Error{ErrorCode::kResourceExhausted, "a memory of " + std::to_string(limits.min) +
                                                    " pages is over the limit of " +
                                                    std::to_string(m->page_limit_)};
  }
  if (is_guarded(m->bounds_) && !m->reserve()) m->bounds_ = Bounds::kExplicit;
  if (m->grow(static_cast<uint32_t>(limits.min)) < 0) {
    return Error{ErrorCode::kResourceExhausted,
                 "a memory of " + std::to_string(limits.min) +
                     " pages is refused: by the system, or by the limit of all memories"};
  }
  return m;
}

Memory::~Memory() {
  if (budget_ != nullptr) budget_->give_back(record_.pages * kPageSize);
  if (mapped_ != 0) munmap(record_.base - (is_guarded(bounds_) ? kFenceBytes : 0), mapped_);
}

bool Memory::reserve() {
  void* p =
      mmap(nullptr, kReservation, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  record_.base = static_cast<uint8_t*>(p) + kFenceBytes;
  mapped_ = kReservation;
  if (bounds_ == Bounds::kGuarded) page_limit_ = std::min(page_limit_, kMaxFencedPages);
  return true;
}

int32_t Memory::grow(uint32_t delta) noexcept {
  uint32_t old = record_.pages;
  if (delta > page_limit_ - old) return -1;
  if (delta == 0) return static_cast<int32_t>(old);
  const uint64_t more = delta * kPageSize;
  if (budget_ != nullptr && !budget_->take(more)) return -1;
  if (!resize(old * kPageSize + more)) {
    if (budget_ != nullptr) budget_->give_back(more);
    return -1;
  }
  record_.pages = old + delta;
  record_.size = record_.pages * kPageSize;
  return static_cast<int32_t>(old);
}

// Makes `size` bytes accessible; new ones are zero because the system hands out zeroed pages.
bool Memory::resize(uint64_t size) noexcept {
  if (is_guarded(bounds_)) {
    return mprotect(record_.base + record_.size, size - record_.size, PROT_READ | PROT_WRITE) == 0;
  }
  void* p = mapped_ == 0
                ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                : mremap(record_.base, mapped_, size, MREMAP_MAYMOVE);
  if (p == MAP_FAILED) return false;
  record_.base = static_cast<uint8_t*>(p);
  mapped_ = size;
  return true;
}

}  // namespace uptier::wasm
