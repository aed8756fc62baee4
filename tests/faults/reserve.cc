// A program that links uptier::reserve; malloc refuses everything from some point on. Its
// allocations then come from the reserve until that is used up, and freed memory can be allocated
// again.
#include "uptier/reserve.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

extern "C" long fail_allocations_from(long n, char mode);

using namespace uptier;

namespace {

void check(bool right, const char* what) {
  if (right) return;
  fail_allocations_from(0, 'o');
  std::fprintf(stderr, "wrong: %s\n", what);
  std::_Exit(1);
}

bool all_are(const void* p, int byte, size_t n) {
  auto* bytes = static_cast<const unsigned char*>(p);
  for (size_t i = 0; i < n; ++i) {
    if (bytes[i] != byte) return false;
  }
  return true;
}

void blocks_keep_what_they_hold() {
  void* before = std::malloc(100);
  std::memset(before, 7, 100);
  fail_allocations_from(1, 'a');
  before = std::realloc(before, 5000);
  check(before != nullptr && all_are(before, 7, 100), "realloc of a block of malloc's");
  std::vector<void*> blocks;
  for (size_t n = 1; n < 200'000; n += n / 3 + 1) {
    void* p = std::malloc(n);
    check(p != nullptr && reinterpret_cast<uintptr_t>(p) % 16 == 0, "malloc");
    std::memset(p, static_cast<int>(blocks.size() % 251), n);
    blocks.push_back(p);
  }
  size_t i = 0;
  for (size_t n = 1; n < 200'000; n += n / 3 + 1, ++i) {
    check(all_are(blocks[i], static_cast<int>(i % 251), n), "a block holds what was written");
    blocks[i] = std::realloc(blocks[i], 2 * n);
    check(blocks[i] != nullptr && all_are(blocks[i], static_cast<int>(i % 251), n), "realloc");
  }
  for (void* p : blocks) std::free(p);
  void* zeroes = std::calloc(1000, 100);
  check(zeroes != nullptr && all_are(zeroes, 0, 100'000), "calloc");
  for (size_t align : {16, 64, 256, 4096}) {
    void* p = nullptr;
    check(posix_memalign(&p, align, 100) == 0 && reinterpret_cast<uintptr_t>(p) % align == 0,
          "posix_memalign");
    std::free(p);
    void* q = ::operator new(100, std::align_val_t(align));
    check(reinterpret_cast<uintptr_t>(q) % align == 0, "operator new of an alignment");
    ::operator delete(q, std::align_val_t(align));
  }
  fail_allocations_from(0, 'o');
  // Blocks from the reserve return to it, now that malloc has memory again.
  std::free(zeroes);
  check(all_are(std::realloc(before, 6000), 7, 100), "realloc back to malloc");
}

// Allocates the whole reserve, twice.
void what_is_given_back_may_be_had_again() {
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<char[]>> blocks(20'000);
    fail_allocations_from(1, 'a');
    size_t count = 0;
    for (; count < blocks.size(); ++count) {
      blocks[count].reset(new (std::nothrow) char[1000]);
      if (blocks[count] == nullptr) break;
    }
    check(count > reserve::kBytes / 1100 && count < blocks.size(), "it ends, and not early");
    bool refused = false;
    try {
      std::vector<char> more(100'000);
    } catch (const std::bad_alloc&) { refused = true; }
    check(refused, "operator new throws when the reserve is used up");
    fail_allocations_from(0, 'o');
  }
}

void threads_share_it() {
  fail_allocations_from(0, 'o');
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 20'000; ++i) {
        std::vector<int> words(static_cast<size_t>(1 + i % 300), t);
        check(words.front() == t && words.back() == t, "a block has one owner");
      }
    });
  }
  fail_allocations_from(1, 's');
  for (std::thread& t : threads) t.join();
  fail_allocations_from(0, 'o');
}

}  // namespace

int main() {
  blocks_keep_what_they_hold();
  what_is_given_back_may_be_had_again();
  threads_share_it();
  const reserve::Use use = reserve::use();
  check(use.blocks == 0 && use.served > 1000 && use.refused == 4, "the counts");
  std::puts("the reserve serves");
  return 0;
}
