// LoopTimer: cycles of loop executions on one thread, by a stack of those that are under way.
//
// The words of a loop site in a slab:
//
//   0 entries         executions whose entry was seen
//   1 iterations      visits of the header
//   2 timed           executions timed from entry to exit; the first `records` after each flush
//   3 timed_iterations, 4 cycles, 5 exclusive_cycles, 6 7 sum of squared cycles (128 bits): of
//   those 8 state           timed since the last flush | entries on the stack << 32
//
// Code counts words 0 and 1 itself and calls enter while `timed since the last flush` is below
// `records`, leave while an entry is on the stack.
//
// An entry on the stack is recorded only if its own exit is seen, by the same slab, site and frame.
// Whoever misses an exit (a trap, another copy, OSR) leaves a stale entry behind. It is dropped,
// and what it knows of timed loops inside it passes on to the entry below, when
//
//   - a frame further out observes anything (frames grow downwards)
//   - another method, or the same function afresh, uses its frame
//   - the loop is entered again in the same frame
//   - the frame arrives from another copy (arrive), or the owner unwinds (unwind)
//
// In each case nothing was credited for it yet. Inclusive cycles are those from entry to exit, in
// whatever code, less the cost of the probes in between; exclusive ones leave out the timed loops
// inside, so inclusive = exclusive + what was timed inside. A full stack refuses and counts.
//
// Recursion: an inner execution of the same loop site has its own record, its iterations are taken
// off the outer one. Where that cannot be known the outer one is not recorded (spoiled).
//
// Cycles are of the time stamp counter: of the clock that ticks at a constant rate, read without
// fences, so differences of tens of cycles are noise.
//
// Compiled without vector instructions, see probe_call.h.
//
//   Thread: its own.
#pragma once

#include <cstdint>

#include "sampler/probe_call.h"

namespace uptier::sampler {

inline constexpr uint32_t kLoopEntries = 0;
inline constexpr uint32_t kLoopIterations = 1;
inline constexpr uint32_t kLoopTimed = 2;
inline constexpr uint32_t kLoopTimedIterations = 3;
inline constexpr uint32_t kLoopCycles = 4;
inline constexpr uint32_t kLoopExclusive = 5;
inline constexpr uint32_t kLoopSquaresLow = 6;
inline constexpr uint32_t kLoopSquaresHigh = 7;
inline constexpr uint32_t kLoopState = 8;
inline constexpr uint32_t kLoopWords = 9;
inline constexpr uint32_t kLoopPublicWords = 8;

// Lets the site be timed again: `records` more. The owner calls it at its flushes.
inline void rearm_loop(uint64_t* words) { words[kLoopState] &= ~uint64_t{UINT32_MAX}; }

// Which execution, and by which rules. `extra` of the calls below is packed().
struct LoopKey {
  uint64_t* slab = nullptr;
  uint64_t* words = nullptr;
  uint64_t frame = 0;  // rbp
  uint32_t records = 100;
  bool function = false;  // the body of a function: its entry means that the frame is new

  static constexpr uint32_t pack(uint32_t records, bool function) {
    return (records & 0x7fffffff) | (function ? 1u << 31 : 0);
  }
};

class LoopTimer {
 public:
  static constexpr uint32_t kDepth = 64;
  // Refusals in a row after which the whole stack is taken for stale.
  static constexpr uint32_t kPatience = 4096;

  // Executions that were not recorded, by reason. Written by the owner, read by any thread.
  struct Losses {
    uint64_t full = 0;     // the stack was full
    uint64_t stale = 0;    // the exit was not seen
    uint64_t spoiled = 0;  // the iterations were not known
  };

  // Cycles that a pair of probes adds to what lies between them, and to what is around them.
  struct Costs {
    uint64_t inner = 0;
    uint64_t outer = 0;
  };

  // Measures the costs by timing nothing, `pair` being an enter and a leave of the site at words 0
  // of the slab that it is given, on the timer of the calling thread's context. The least of 256
  // rounds. About 30 us.
  static Costs measure(void (*pair)(uint64_t* slab)) noexcept;
  // The same for enter and leave themselves, without compiled code around them.
  static Costs measure() noexcept;

  void set_costs(Costs c) { costs_ = c; }
  Costs costs() const { return costs_; }

  // `now` is when the exit was seen; enter takes its own time, last.
  void enter(const LoopKey& key) noexcept;
  void leave(const LoopKey& key, uint64_t now) noexcept;
  // The frame goes on in an instrumented copy, coming from another one.
  void arrive(const uint64_t* slab, uint64_t frame) noexcept;
  // Drops what lies further in than `frame`; after a trap, with the stack pointer of the activation
  // that it ended in. `UINT64_MAX` drops all.
  void unwind(uint64_t frame) noexcept;

  uint32_t depth() const { return depth_; }
  Losses losses() const noexcept {
    return {look(losses_.full), look(losses_.stale), look(losses_.spoiled)};
  }

 private:
  struct Entry {
    uint64_t* slab;
    uint64_t* words;
    uint64_t frame;
    uint64_t start;
    uint64_t child;       // net cycles of timed loops inside
    uint64_t overhead;    // cost of their probes
    uint64_t iterations;  // of the site at the start
    uint64_t nested;      // of those since, done by inner executions
    bool spoiled;
  };

  static uint64_t look(const uint64_t& n) { return __atomic_load_n(&n, __ATOMIC_RELAXED); }
  static void bump(uint64_t& n) { __atomic_store_n(&n, n + 1, __ATOMIC_RELAXED); }

  Entry& top() { return stack_[depth_ - 1]; }
  void drop() noexcept;
  void drop_to(uint32_t depth) noexcept;
  // Returns the position of the entry of a key in its frame, or depth_.
  uint32_t find(const LoopKey& key) const noexcept;
  // Returns the innermost entry of a site, or null.
  Entry* outer_of(const uint64_t* words) noexcept;
  void spoil(const uint64_t* words) noexcept;
  void complete(const LoopKey& key, uint64_t now) noexcept;
  static void record(const Entry& e, uint64_t net, uint64_t iterations) noexcept;

  Entry stack_[kDepth];
  uint32_t depth_ = 0;
  uint32_t refused_ = 0;  // in a row
  Costs costs_;
  Losses losses_;
};

// For compiled code: `value` is the frame.
extern "C" void uptier_loop_enter(uint64_t* slab, const ProbeCall* call,
                                  ThreadContext* context) noexcept;
extern "C" void uptier_loop_leave(uint64_t* slab, const ProbeCall* call,
                                  ThreadContext* context) noexcept;
extern "C" void uptier_loop_arrive(uint64_t* slab, const ProbeCall* call,
                                   ThreadContext* context) noexcept;

}  // namespace uptier::sampler
