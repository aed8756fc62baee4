#include "jit/code/random.h"

#include <sys/random.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace uptier::jit {
namespace {

bool ask_kernel(void* to, size_t bytes) {
  auto* next = static_cast<char*>(to);
  while (bytes != 0) {
    ssize_t got = ::getrandom(next, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// SplitMix64, with `x` as its state.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// `secret` is drawn with the first numbers of the process; 0: not yet drawn.
std::atomic<uint64_t> secret{0};
std::atomic<uint64_t> draws{0};

}  // namespace

bool kernel_random(void* to, size_t bytes) {
  uint64_t known = secret.load(std::memory_order_relaxed);
  if (known == 0 && ask_kernel(&known, sizeof known)) {
    secret.store(known, std::memory_order_relaxed);
  }
  if (ask_kernel(to, bytes)) return true;
  if (known == 0) return false;
  // A sandbox that was entered later may refuse: code that runs is worth more than the kernel's
  // randomness.
  auto* next = static_cast<char*>(to);
  while (bytes != 0) {
    const uint64_t draw = draws.fetch_add(1, std::memory_order_relaxed) + 1;
    const uint64_t word = mixed(mixed(known + draw * 0x9e3779b97f4a7c15) ^ known);
    const size_t part = bytes < sizeof word ? bytes : sizeof word;
    std::memcpy(next, &word, part);
    next += part;
    bytes -= part;
  }
  return true;
}

}  // namespace uptier::jit
