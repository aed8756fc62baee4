// CodeSpace: one reserved region for all machine code of a runtime, W^X by construction.
//
//   [ data | code pages ]
//
// The data (cells and constants that stubs jump through) is always read-write. No address is ever
// both writable and executable, and no instruction byte changes while a thread may run it. The
// region is one range of addresses, so rel32 reaches from any part to any other.
//
// Each allocation has pages of its own, which are filled while they are read-write and then become
// read-execute. If the space is `packed`, allocations share pages at the granularity of cache
// lines: hot parts lie one after the other from the start of the region, cold parts from its end.
//
//   [ data | hot hot hot ->  ...  <- cold cold ]
//
// Shared pages are mapped twice: read-execute in the region, and read-write at a random address
// that only the space knows (code_mapping.h). Code is published by writing it there, in lines that
// no thread runs. That needs no system call, and threads that run other lines of the page notice
// nothing. Before lines are reused, all threads of the process have executed a serializing
// instruction (membarrier). A forked child has no writable mapping, so it cannot patch its parent.
//
//   Thread: any; allocate and free take a lock. owner_of() does not, and may be called from a signal
//   handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jit/code/random.h"
#include "uptier/result.h"

namespace uptier::jit {

class CodeSpace;
class Code;

// Defences against guests that choose the code to compile; see docs/notes/0046-code-memory.md.
struct Hardening {
  // Hides constants of guest bodies: code does not contain them in plain form (blinding.h) if they
  // lie outside of -blind_above - 1 .. blind_above.
  bool blind_constants = false;
  uint32_t blind_above = 0xffff;
  // Puts ENDBR64 where indirect calls and jumps land.
  bool landing_pads = false;
  RandomBytes random = kernel_random;
};

// An allocation of a code space, in one part or two: a hot part, and a cold part far away from it.
// Freed with the object. Movable, one owner.
class CodeSpan {
 public:
  CodeSpan() = default;
  CodeSpan(CodeSpan&& other) noexcept;
  CodeSpan& operator=(CodeSpan&& other) noexcept;
  ~CodeSpan();

  // Start of the code (not necessarily of a page) and its length in bytes, both parts together.
  uint8_t* data() const { return data_; }
  uint32_t size() const { return hot_size_ + cold_size_; }
  // The cold part follows the hot one immediately, or lies anywhere after it.
  uint32_t hot_size() const { return hot_size_; }
  uint8_t* cold_data() const { return cold_; }
  uint32_t cold_size() const { return cold_size_; }
  // The place to write the bytes to before they are published: the hot part, then the cold part.
  uint8_t* writable() const { return staged_ != nullptr ? staged_.get() : data_; }
  // Null for an empty span.
  CodeSpace* space() const { return space_; }

 private:
  friend class CodeSpace;
  CodeSpace* space_ = nullptr;
  uint8_t* data_ = nullptr;
  uint8_t* cold_ = nullptr;
  uint32_t hot_size_ = 0;
  uint32_t cold_size_ = 0;
  std::unique_ptr<uint8_t[]> staged_;  // in a packed space, until published
};

// The units of a code space that an allocation takes, or that are left of a room.
struct CodeRuns {
  uint64_t first = 0, units = 0;
  uint64_t cold_first = 0, cold_units = 0;  // none if there is no separate cold part
};

// Consecutive lines of a packed space, from which bodies that should lie side by side are
// allocated: hot parts upwards, cold parts downwards. The unused rest is given back with the
// object. Movable, one owner.
class CodeRoom {
 public:
  CodeRoom(CodeRoom&& other) noexcept;
  ~CodeRoom();

 private:
  friend class CodeSpace;
  CodeRoom() = default;
  CodeSpace* space_ = nullptr;
  CodeRuns left_;
};

class CodeSpace {
 public:
  static constexpr uint32_t kPage = 4096;
  static constexpr uint32_t kLine = 64;  // a cache line

  struct Limits {
    uint64_t code_budget;  // bytes of pages in service
    uint32_t data_bytes;   // size of the data area
    bool packed = false;   // bodies share pages, if the kernel can map memory twice
    bool moves = false;    // code may be copied to other places (copy_code.h), if packed
    // All pages that may be shared are executable from the start: for perf (jit_dump.h).
    bool open_at_once = false;
    Hardening hardening = {};
  };
  // Reserves the region. If pages cannot become executable later, the space is always packed.
  // Errors: kInvalidArgument if rel32 could not span it, kResourceExhausted.
  static Result<std::unique_ptr<CodeSpace>> create(const Limits& limits);
  // All spans must be gone.
  ~CodeSpace();

  // Makes all code unreachable at once: nothing in it is executable, and no address has an owner.
  // Call it before destroying everything in the space: the spans then only forget their memory,
  // instead of making several system calls each. Later allocations are refused. The data area
  // stays. Thread: the last one that uses the space.
  void release_all() noexcept;

  // Returns room for `size` bytes, filled with int3. Errors: kResourceExhausted beyond the budget,
  // or when the kernel refuses. `beyond_budget` is for code that a call cannot continue without;
  // there is address space for as much again as the budget. `cold`: bytes of a second part.
  //
  // If the allocation has pages of its own: when the last page has room, the start moves by a
  // multiple of 64 bytes that differs between allocations, so that many small bodies do not compete
  // for the same cache sets. The second part follows the first.
  Result<CodeSpan> allocate(uint32_t size, bool beyond_budget = false, uint32_t cold = 0);
  // Takes the first free lines in a row that hold `hot` bytes, and lines for `cold` bytes at the
  // other end. Bodies are allocated from it side by side, in the order of the requests. Its memory
  // counts as in service once it is allocated. Packed spaces only. Errors: as allocate().
  Result<CodeRoom> reserve(uint64_t hot, uint64_t cold, bool beyond_budget);
  // Errors: kResourceExhausted if the room is full.
  Result<CodeSpan> allocate(CodeRoom& room, uint32_t size, uint32_t cold);
  // Makes an allocation read-execute. Errors: kResourceExhausted if the kernel refuses; never in a
  // packed space.
  Status publish(CodeSpan& span);
  bool packed() const;
  // Returns whether code records its position-dependent fields, so that it can be copied.
  bool moves() const;
  const Hardening& hardening() const;
  // Sets the owner of these bytes, for owner_of(); null before the owner is destroyed.
  void set_owner(const CodeSpan& span, const Code* owner) noexcept;
  // Returns the Code that an address lies in, or null. Async-signal-safe.
  const Code* owner_of(const void* pc) const noexcept;
  // Returns whether an address lies in the region, data included: any code in it can reach all of
  // it with rel32. Async-signal-safe.
  bool contains(const void* p) const noexcept;

  // Counts the codes in the space that count edges; called by Code.
  void note_edge_counter(int change) noexcept;
  // Returns whether there is such a code. Async-signal-safe.
  bool has_edge_counters() const noexcept;

  // The data area, read-write, zeroed, for the life of the space.
  std::span<uint8_t> data() const;

  // The bytes of pages that hold code.
  uint64_t bytes_in_service() const;
  uint64_t bytes_freed() const;
  // lines_used: for each page, how many of its lines hold code. line_of: the line of the code area
  // that an address lies in, counted from the start of the first page.
  std::vector<uint8_t> lines_used() const;
  uint32_t line_of(const void* pc) const noexcept;
  // Makes the n-th allocation from now on (1: the next) fail, once. For stress tests; 0 switches it
  // off.
  void fail_allocation(uint64_t n);
  uint64_t failures_forced() const;

 private:
  friend class CodeSpan;
  friend class CodeRoom;
  struct State;
  using Runs = CodeRuns;
  CodeSpace();
  Result<CodeSpan> fill(const Runs& runs, uint32_t size, uint32_t cold);
  void free(CodeSpan& span) noexcept;
  void give_back(CodeRoom& room) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace uptier::jit
