// StubTable: the addresses that callers hold.
//
// A stub is immutable code; data decide what it does next. For each method:
//
//   mov r11, fs:[block]                    where the calling thread has its state
//   dec dword [r11 + state.call_countdown] below zero, events are due
//   js  tail
//   jmp [cell]                             the code in service
//   ...
//   tail: mov r11d, method
//         jmp entry_slow
//   trial: mov r11d, method
//          jmp trial                       the routine that times calls of two versions, routines.h
//
// Each of the three begins with an ENDBR64 if the space wants landing pads.
//
// With a shared countdown (exact mode) the first two lines are `lock dec dword [countdown]`, one
// word for all threads, so that the n-th call is the n-th wherever it comes from.
//
// A cell starts out as the address of the method's own tail: until code is installed, every call
// goes to entry_slow. Installing is one aligned 8-byte store.
//
// Stubs are written in chunks of kChunk methods, when the first stub of a chunk is needed. A chunk
// is whole pages, published once.
//
//   Thread: ensure() one at a time; everything else any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jit/code/code_space.h"
#include "uptier/ids.h"
#include "uptier/result.h"

namespace uptier::jit {

class StubTable {
 public:
  static constexpr uint32_t kStubBytes = 32;
  static constexpr uint32_t kTailBytes = 16;
  static constexpr uint32_t kTrialBytes = 16;
  static constexpr uint32_t kChunk = 256;

  enum class Countdown : uint8_t { kPerThread, kShared };

  // Returns the bytes of CodeSpace::data() that a table needs.
  static uint32_t data_bytes(uint32_t capacity);
  // `data` is part of the space's data area, zeroed, at least data_bytes(capacity) long, 8-aligned.
  // `entry_slow` and `trial` are addresses of routines; `trial` may be null if no cell will lead
  // there. Errors: kInvalidArgument if the data is too small.
  static Result<std::unique_ptr<StubTable>> create(CodeSpace& space, std::span<uint8_t> data,
                                                   uint32_t capacity, const void* entry_slow,
                                                   Countdown countdown,
                                                   const void* trial = nullptr);

  // Creates the stub of `m`. Errors: kResourceExhausted beyond the capacity or the code budget.
  Status ensure(MethodId m);
  // The functions below need an earlier ensure(m).

  const void* stub(MethodId m) const;
  // Returns the address that calls entry_slow for `m`, whatever the cell says.
  const void* tail(MethodId m) const;
  // Returns the address, for the cell of `m`, that sends its calls to the trial routine.
  const void* trial(MethodId m) const;
  // The code in service.
  const void* target(MethodId m) const;
  void set_target(MethodId m, const void* code);
  // Returns the cell's address, for calls that go through it without counting.
  const void* cell(MethodId m) const;
  // Returns the shared countdown of `m`; callers decrement it atomically.
  std::atomic<int32_t>& shared_countdown(MethodId m) const;

  // The existing chunks, in the order of their creation. One thread at a time, as for ensure().
  std::span<const CodeSpan> chunks() const { return spans_; }

  // Returns the method whose stub, tail or trial `pc` lies in, or none. For profilers and listings.
  MethodId method_of(const void* pc) const;

 private:
  StubTable(CodeSpace& space, std::span<uint8_t> data, uint32_t capacity, const void* entry_slow,
            Countdown countdown, const void* trial);
  std::atomic<const void*>& cell_of(uint32_t m) const;
  Result<CodeSpan> write_chunk(uint32_t first);
  const uint8_t* chunk_of(uint32_t m) const;

  CodeSpace& space_;
  uint8_t* data_;  // cells, then shared countdowns
  uint32_t capacity_;
  const void* entry_slow_;
  const void* trial_;
  Countdown countdown_;
  std::vector<CodeSpan> spans_;
  std::unique_ptr<std::atomic<const uint8_t*>[]> chunks_;  // by method / kChunk
};

}  // namespace uptier::jit
