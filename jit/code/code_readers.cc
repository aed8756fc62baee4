#include "jit/code/code_readers.h"

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace uptier::jit {
namespace {

// Global because signal handlers have no argument of ours.
constinit std::atomic<uint32_t> g_readers{0};

}  // namespace

CodeReading::CodeReading() noexcept { g_readers.fetch_add(1, std::memory_order_seq_cst); }

// Release: all reads happen before the destroyer goes on.
CodeReading::~CodeReading() { g_readers.fetch_sub(1, std::memory_order_release); }

// Either a reader sees that something was removed, or it is seen here.
void await_code_readers() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (g_readers.load(std::memory_order_seq_cst) != 0) ::sched_yield();
}

void forget_readers_of_other_threads() noexcept { g_readers.store(0, std::memory_order_relaxed); }

}  // namespace uptier::jit
