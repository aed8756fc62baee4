// CodeSpace::State: the members of a CodeSpace, for the files that implement it.
//
//   Thread: the mutex guards the members after it; the others are constant unless their comment says
//   otherwise.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "jit/code/code_space.h"
#include "uptier/thread_safety.h"

namespace uptier::jit {

inline constexpr uint32_t kLine = CodeSpace::kLine;
inline constexpr uint64_t kLinesInPage = CodeSpace::kPage / kLine;

inline uint64_t round_up(uint64_t n, uint64_t to = CodeSpace::kPage) {
  return (n + to - 1) / to * to;
}

// Some bytes of the code area: those of one part of a span, or the pages that hold it.
struct Bytes {
  uint8_t* at = nullptr;
  uint64_t bytes = 0;
};

struct CodeSpace::State {
  // Bytes of code whose owners become writable at once, and the bytes of the table for them.
  static constexpr uint64_t kOwnerStep = uint64_t{1} << 20;
  static constexpr uint64_t kOwnerBytes = kOwnerStep / kLine * sizeof(std::atomic<const Code*>);
  static uint64_t owner_bytes(uint64_t code_size) {
    return round_up(code_size, kOwnerStep) / kOwnerStep * kOwnerBytes;
  }
  static constexpr uint32_t kMostFreed = 64;  // parts that wait, and their bytes
  static constexpr uint64_t kMostFreedBytes = 256 << 10;
  static constexpr uint32_t kMostSpare = 16;  // pages

  uint8_t* base = nullptr;  // of the region
  uint64_t data_size = 0;   // of the data area, in whole pages
  uint64_t size = 0;        // of the region
  uint64_t budget = 0;
  uint64_t unit = CodeSpace::kPage;  // of allocation
  bool moves = false;                // code may be copied to other places
  bool released = false;             // release_all() was called; no other thread uses the space
  uint8_t* twin = nullptr;           // the writable mapping of the code area; packed only
  bool always_executable = false;    // the whole area is, even where it holds no code
  Hardening hardening;
  std::atomic<int32_t> edge_counters{0};
  // By line of the code area; a mapping of its own, which is writable where owners were set.
  std::atomic<const Code*>* owners = nullptr;

  mutable CheckedLock<std::mutex> mutex;  // leaf lock
  std::map<uint64_t, uint64_t> free_runs
      UPTIER_GUARDED_BY(mutex);  // first unit -> units; runs never touch one another
  std::vector<uint8_t> lines_used UPTIER_GUARDED_BY(mutex);  // by page of the code area
  std::vector<bool> open UPTIER_GUARDED_BY(mutex);  // by page: it is read-execute; packed only
  // By page: it is open although it holds no code, for the next that needs one; packed only.
  std::vector<bool> spare UPTIER_GUARDED_BY(mutex);
  uint32_t spare_count UPTIER_GUARDED_BY(mutex) = 0;
  std::vector<bool> owners_open UPTIER_GUARDED_BY(mutex);  // by kOwnerStep: it is writable
  // Freed parts whose lines may not be reused yet: a thread may have their instructions in its
  // pipeline. Packed only.
  std::array<Bytes, kMostFreed> freed_parts UPTIER_GUARDED_BY(mutex);
  uint32_t freed_count UPTIER_GUARDED_BY(mutex) = 0;
  uint64_t freed_bytes UPTIER_GUARDED_BY(mutex) = 0;  // of these parts
  uint32_t colour UPTIER_GUARDED_BY(mutex) = 0;
  uint64_t in_service UPTIER_GUARDED_BY(mutex) = 0;
  uint64_t freed UPTIER_GUARDED_BY(mutex) = 0;
  uint64_t fail_in UPTIER_GUARDED_BY(mutex) = 0;
  uint64_t failures_forced UPTIER_GUARDED_BY(mutex) = 0;

  bool packed() const { return unit != CodeSpace::kPage; }
  uint8_t* code() const { return base + data_size; }
  uint64_t code_size() const { return size - data_size; }
  uint64_t offset_of(const uint8_t* p) const { return static_cast<uint64_t>(p - code()); }

  using Runs = CodeRuns;
  bool take(uint64_t units, bool from_end, uint64_t* first) UPTIER_REQUIRES(mutex);
  void give_back(uint64_t first, uint64_t units) noexcept UPTIER_REQUIRES(mutex);
  uint64_t units_of(uint64_t bytes) const;
  Status take_parts(uint64_t bytes, uint64_t cold, bool beyond_budget, Runs* runs)
      UPTIER_REQUIRES(mutex);
  void give_back(const Runs& runs) UPTIER_REQUIRES(mutex);
  bool forced_failure() UPTIER_REQUIRES(mutex);
  // Returns the memory of the area that a part of a span takes, in whole units.
  Bytes taken_by(const uint8_t* data, uint32_t bytes) const;
  Bytes pages_of(Bytes b) const;
  uint64_t count_lines(Bytes b, int change) UPTIER_REQUIRES(mutex);
  Status map(bool shared, bool at_once);
  bool open_pages(Bytes part) UPTIER_REQUIRES(mutex);
  bool open_owners(Bytes part) UPTIER_REQUIRES(mutex);
  void erase_shared(Bytes part) UPTIER_REQUIRES(mutex);
  void close_unused(Bytes part) UPTIER_REQUIRES(mutex);
  void free_later(Bytes part) noexcept UPTIER_REQUIRES(mutex);
  void reuse_freed() noexcept UPTIER_REQUIRES(mutex);
  bool take_or_reuse(uint64_t units, bool from_end, uint64_t* first) UPTIER_REQUIRES(mutex);
  // Returns the writable address of a place in the code area.
  uint8_t* twin_of(const uint8_t* p) const { return twin + offset_of(p); }

  ~State() {
    if (twin != nullptr) ::munmap(twin, code_size());
    if (owners != nullptr) ::munmap(owners, owner_bytes(code_size()));
    if (base != nullptr) ::munmap(base, size);
  }
};

}  // namespace uptier::jit
