#include "uptier/reserve.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

// The linker gives what calls malloc the __wrap_ ones, and what calls __real_malloc the others.
extern "C" {
void* __real_malloc(size_t);
void* __real_calloc(size_t, size_t);
void* __real_realloc(void*, size_t);
void* __real_aligned_alloc(size_t, size_t);
void __real_free(void*);
void* __wrap_malloc(size_t);
void* __wrap_calloc(size_t, size_t);
void* __wrap_realloc(void*, size_t);
void* __wrap_aligned_alloc(size_t, size_t);
int __wrap_posix_memalign(void**, size_t, size_t);
void __wrap_free(void*);
}

namespace uptier::reserve {
namespace {

// A block is a power of two of bytes, at an address that is a multiple of kLeast. Before the
// returned address, a header has the data that free needs.
constexpr size_t kLeast = 64, kKinds = 19;
static_assert(kLeast << (kKinds - 1) == kBytes);

struct Head {
  uint32_t kind;
  uint32_t back;  // bytes to the block's begin
  uint64_t size;  // that was asked for
};
static_assert(sizeof(Head) == 16);
struct Free {
  Free* next;
};

std::atomic_flag busy = ATOMIC_FLAG_INIT;
std::byte* begin = nullptr;  // of the range; null: there is none
size_t taken = 0;            // bytes of it that were ever part of a block
Free* free_blocks[kKinds] = {};
Use counts;

void lock() {
  while (busy.test_and_set(std::memory_order_acquire)) sched_yield();
}
void unlock() { busy.clear(std::memory_order_release); }

__attribute__((constructor(101))) void prepare() {
  void* range = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return;
  begin = static_cast<std::byte*>(range);
  pthread_atfork(lock, unlock, unlock);
}

bool holds(const void* p) {
  const auto at = reinterpret_cast<uintptr_t>(p), from = reinterpret_cast<uintptr_t>(begin);
  return begin != nullptr && at - from < kBytes;
}

Head& head_of(void* p) { return static_cast<Head*>(p)[-1]; }

// Returns a block, or null. The caller has the lock.
std::byte* block(uint32_t kind) {
  if (Free* first = free_blocks[kind]) {
    free_blocks[kind] = first->next;
    return reinterpret_cast<std::byte*>(first);
  }
  const size_t size = kLeast << kind;
  if (begin != nullptr && kBytes - taken >= size) return begin + std::exchange(taken, taken + size);
  for (uint32_t larger = kind + 1; larger < kKinds; ++larger) {  // one of those is split
    Free* first = free_blocks[larger];
    if (first == nullptr) continue;
    free_blocks[larger] = first->next;
    auto* at = reinterpret_cast<std::byte*>(first);
    while (larger > kind) {
      --larger;
      auto* half = reinterpret_cast<Free*>(at + (kLeast << larger));
      half->next = free_blocks[larger];
      free_blocks[larger] = half;
    }
    return at;
  }
  return nullptr;
}

// Returns `size` bytes at a multiple of `align`, a power of two, or null.
void* take(size_t size, size_t align) {
  align = std::max(align, sizeof(Head));
  const size_t whole = size + align;
  void* given = nullptr;
  lock();
  if (whole > size && whole <= kBytes) {
    const size_t units = (whole + kLeast - 1) / kLeast;
    const auto kind = static_cast<uint32_t>(std::bit_width(units - 1));
    if (std::byte* at = block(kind)) {
      const auto from = reinterpret_cast<uintptr_t>(at);
      given = at + ((from + sizeof(Head) + align - 1) / align * align - from);
      head_of(given) = {kind, static_cast<uint32_t>(static_cast<std::byte*>(given) - at), size};
    }
  }
  given != nullptr ? ++counts.blocks, ++counts.served : ++counts.refused;
  unlock();
  if (given == nullptr) errno = ENOMEM;
  return given;
}

void give_back(void* p) {
  const Head head = head_of(p);
  auto* at = reinterpret_cast<Free*>(static_cast<std::byte*>(p) - head.back);
  lock();
  at->next = free_blocks[head.kind];
  free_blocks[head.kind] = at;
  if (--counts.blocks == 0) {  // whatever was split is whole again
    taken = 0;
    std::ranges::fill(free_blocks, nullptr);
  }
  unlock();
}

}  // namespace

Use use() noexcept {
  lock();
  const Use now = counts;
  unlock();
  return now;
}

}  // namespace uptier::reserve

using namespace uptier::reserve;

void* __wrap_malloc(size_t n) {
  void* p = __real_malloc(n);
  return p != nullptr ? p : take(n, 1);
}

void* __wrap_calloc(size_t n, size_t size) {
  if (void* p = __real_calloc(n, size)) return p;
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes)) return nullptr;
  void* p = take(bytes, 1);
  return p == nullptr ? nullptr : std::memset(p, 0, bytes);
}

void* __wrap_realloc(void* p, size_t n) {
  if (p == nullptr) return __wrap_malloc(n);
  if (!holds(p)) {
    if (void* grown = __real_realloc(p, n)) return grown;
    if (n == 0) return nullptr;  // it has been freed
    void* q = take(n, 1);
    if (q == nullptr) return nullptr;
    std::memcpy(q, p, std::min(n, malloc_usable_size(p)));
    __real_free(p);
    return q;
  }
  if (n == 0) {
    give_back(p);
    return nullptr;
  }
  void* q = __wrap_malloc(n);
  if (q == nullptr) return nullptr;
  std::memcpy(q, p, std::min<size_t>(n, head_of(p).size));
  give_back(p);
  return q;
}

void* __wrap_aligned_alloc(size_t align, size_t n) {
  void* p = __real_aligned_alloc(align, n);
  return p != nullptr ? p : take(n, align);
}

int __wrap_posix_memalign(void** p, size_t align, size_t n) {
  void* got = __wrap_aligned_alloc(align, n);
  if (got == nullptr) return ENOMEM;
  *p = got;
  return 0;
}

void __wrap_free(void* p) { holds(p) ? give_back(p) : __real_free(p); }

namespace {

// As the standard has it: the program's handler may make room, or throw.
template <typename F>
void* with_handler(F&& allocate) {
  for (;;) {
    if (void* p = allocate()) return p;
    std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

// The operators for arrays and the nothrow operators call these.
void* operator new(size_t n) {
  return with_handler([n] { return __wrap_malloc(std::max<size_t>(n, 1)); });
}
void* operator new(size_t n, std::align_val_t align) {
  const auto a = static_cast<size_t>(align);
  const size_t whole = (std::max<size_t>(n, 1) + a - 1) / a * a;
  return with_handler([=] { return __wrap_aligned_alloc(a, whole); });
}
void operator delete(void* p) noexcept { __wrap_free(p); }
void operator delete(void* p, size_t) noexcept { __wrap_free(p); }
void operator delete(void* p, std::align_val_t) noexcept { __wrap_free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { __wrap_free(p); }
