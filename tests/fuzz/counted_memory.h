// counted_memory.h: counts the memory of a fuzzer's process, in bytes of blocks that exist. Replaces operator new,
// so one file of a program includes it.
#pragma once

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace {

size_t held = 0;
size_t most_held = 0;

void* counted(size_t size) {
  void* block = std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) throw std::bad_alloc();
  held += malloc_usable_size(block);
  if (held > most_held) most_held = held;
  return block;
}

void release(void* block) noexcept {
  if (block != nullptr) held -= malloc_usable_size(block);
  std::free(block);
}

}  // namespace

void* operator new(size_t size) { return counted(size); }
void* operator new[](size_t size) { return counted(size); }
// libFuzzer uses these. Memory is not refused here.
void* operator new(size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* block) noexcept { release(block); }
void operator delete[](void* block) noexcept { release(block); }
void operator delete(void* block, size_t) noexcept { release(block); }
void operator delete[](void* block, size_t) noexcept { release(block); }
