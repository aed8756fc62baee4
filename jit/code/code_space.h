// CodeSpace: one reserved region for all machine code of a runtime, W^X by construction.
//
//   [ data | code pages ]
//
// Data (cells, constants the stubs jump through) is read-write for ever. No address is ever writable
// and executable, and no byte of an instruction changes while a thread may run it. The region is one
// range of addresses, so rel32 reaches from any part to any other.
//
// Each allocation has pages of its own, filled while they are read-write, then made read-execute.
// Or, where the space is `packed`, allocations share pages by the cache line: hot parts lie one
// after the other from the region's start, cold parts from its end.
//
//   [ data | hot hot hot ->  ...  <- cold cold ]
//
// Pages that are shared are mapped twice: read-execute in the region, read-write at an address that
// is drawn and that only the space knows (code_mapping.h). What is published is written there, in lines that nobody runs; it costs no
// system call, and threads that run other lines of the page notice nothing. Before lines are used
// again, all threads of the process have executed a serializing instruction (membarrier). A forked
// child has no writable mapping, so it cannot patch its parent.
//
//   Thread: any; allocate and free take a lock. owner_of() does not, and may be called from a
//   signal handler.
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

// What is done against those who choose what is compiled; see docs/notes/0046-code-memory.md.
struct Hardening {
  // Constants from bodies do not appear in code as they are (blinding.h), if they lie outside of
  // -blind_above - 1 .. blind_above.
  bool blind_constants = false;
  uint32_t blind_above = 0xffff;
  // ENDBR64 where indirect calls and jumps land.
  bool landing_pads = false;
  RandomBytes random = kernel_random;
};

// A part of a code space, or two: one of what runs often, one far away of what does not. Freed with
// the object. Movable, one owner.
class CodeSpan {
 public:
  CodeSpan() = default;
  CodeSpan(CodeSpan&& other) noexcept;
  CodeSpan& operator=(CodeSpan&& other) noexcept;
  ~CodeSpan();

  // Start of the code (not necessarily of a page) and its length in bytes, both parts together.
  uint8_t* data() const { return data_; }
  uint32_t size() const { return hot_size_ + cold_size_; }
  // The cold part follows the hot one at once, or lies anywhere behind it.
  uint32_t hot_size() const { return hot_size_; }
  uint8_t* cold_data() const { return cold_; }
  uint32_t cold_size() const { return cold_size_; }
  // Where to write the bytes, before they are published: the hot part's, after it the cold part's.
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
  std::unique_ptr<uint8_t[]> staged_;  // of a packed space, until it is published
};

// What an allocation takes of a code space, in its units, or what is left of a room.
struct CodeRuns {
  uint64_t first = 0, units = 0;
  uint64_t cold_first = 0, cold_units = 0;  // none where there is no part apart
};

// Consecutive lines of a packed space, that what is to lie side by side is allocated from: hot parts
// upwards, cold parts downwards. What is left goes back with the object. Movable, one owner.
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
  static constexpr uint32_t kLine = 64;  // of the caches

  struct Limits {
    uint64_t code_budget;  // bytes of pages in service
    uint32_t data_bytes;   // size of the data area
    bool packed = false;   // bodies share pages, where the kernel maps memory twice
    bool moves = false;    // code is copied to other places (copy_code.h), where it is packed
    // All pages that may be shared are executable from the start: for perf (jit_dump.h).
    bool open_at_once = false;
    Hardening hardening = {};
  };
  // Reserves the region. Where no page can be made executable later, the space is packed in any
  // case. Errors: kInvalidArgument when rel32 could not span it, kResourceExhausted.
  static Result<std::unique_ptr<CodeSpace>> create(const Limits& limits);
  // Every span must be gone.
  ~CodeSpace();

  // Takes all code out of reach at once: nothing in it is executable, and no address has an owner.
  // For whoever is about to destroy everything that lies in the space: its spans are then only
  // forgotten, where each would else take the kernel some calls. What is allocated from here on is
  // refused. The data area stays. Thread: the last that uses the space.
  void release_all() noexcept;

  // Returns room for `size` bytes, all of them int3. Errors: kResourceExhausted past the budget, or
  // when the kernel refuses. `beyond_budget`: for code that a call cannot go on without; there is
  // address space for as much again. `cold`: bytes of a second part.
  //
  // Pages of its own: where there is room in the last one, the start is moved by a multiple of 64
  // bytes that differs from one allocation to the next, so that many small bodies do not meet in
  // the same sets of the caches. The second part follows the first.
  Result<CodeSpan> allocate(uint32_t size, bool beyond_budget = false, uint32_t cold = 0);
  // Takes the first room that has so many bytes of lines in a row, and `cold` bytes at the other end:
  // bodies are allocated from it side by side, in the order in which they are asked for. What is
  // taken counts as in service when it is. Packed spaces only. Errors: as of allocate().
  Result<CodeRoom> reserve(uint64_t hot, uint64_t cold, bool beyond_budget);
  // Errors: kResourceExhausted when the room is full.
  Result<CodeSpan> allocate(CodeRoom& room, uint32_t size, uint32_t cold);
  // Makes an allocation read-execute. Errors: kResourceExhausted when the kernel refuses; never in a
  // packed space.
  Status publish(CodeSpan& span);
  bool packed() const;
  // Returns whether code says which of its fields depend on where it lies, so that it can be copied.
  bool moves() const;
  const Hardening& hardening() const;
  // Says whose bytes these are, for owner_of(); null before the owner dies.
  void set_owner(const CodeSpan& span, const Code* owner) noexcept;
  // Returns the Code that an address lies in, or null. Async-signal-safe.
  const Code* owner_of(const void* pc) const noexcept;
  // Says whether an address lies in the region, data included: all of it is in reach of rel32 from
  // any code in it. Async-signal-safe.
  bool contains(const void* p) const noexcept;

  // Counts the codes in the space that count edges; a Code does so.
  void note_edge_counter(int change) noexcept;
  // Returns whether there is one. Async-signal-safe.
  bool has_edge_counters() const noexcept;

  // The data area, read-write, zeroed, for the life of the space.
  std::span<uint8_t> data() const;

  // Of pages that hold code.
  uint64_t bytes_in_service() const;
  uint64_t bytes_freed() const;
  // By page, how many of its lines hold code; and in which line of the code an address lies, counted
  // from the first page's.
  std::vector<uint8_t> lines_used() const;
  uint32_t line_of(const void* pc) const noexcept;
  // Fails the n-th allocation from now on (1: the next), once. For stress tests; 0 switches it off.
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
