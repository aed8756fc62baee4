// ThreadContext: everything that compiled code knows about its thread, reached by one TLS pointer.
//
// `t_blocks` (context.cc) is initial-exec TLS, so its offset from the thread pointer is one constant
// for all threads, and code reaches the context with one load. An unattached thread sees a shared
// context whose countdowns are never due: its calls run plain and unobserved, and nothing it touches
// faults.
//
// The context is one reservation: a header, then one MethodState for each method of the runtime
// that the thread is attached to. Its pages become memory when their methods first run on the
// thread.
//
// States are addressed in blocks of kBlockMethods. TLS has one address per block, and the first is
// the address of the context itself. If a context does not have a block, TLS has the address of the
// first block of the shared context; several methods share a state there.
//
//   Thread: written by its own thread only, except where a field says otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "uptier/opcodes.h"

namespace uptier::sampler {

class LogRing;
class LoopTimer;

// The state of one method on one thread: a cache line for calls and one for loops, so that the
// commonest slow paths find all they need in one line (see fast_sample.h). Compiled code knows the
// first 16 bytes and optimized_slab; the rest belongs to the slow paths (see schedule.h). All zero
// means that the method has not run: its first call and its first loop iteration are events, which
// arm the countdowns. `calls`, `call_gap`, `call_countdown`, `iterations`, `sampled_calls` and
// `bursts` are stored with relaxed atomics, because the worker reads them concurrently.
struct alignas(64) MethodState {
  int32_t call_countdown = 0;  // calls left before the next event; the event is due below zero
  int32_t loop_countdown = 0;  // > 0: iterations until the next burst; < 0: minus those left in one
  uint64_t* slab = nullptr;    // counters of the instrumented copy, or null until there is one
  uint64_t calls = 0;          // number of the call at the last event, 1 is the first
  uint64_t next_sample = 0;    // number of the call that is sampled next
  uint64_t next_flush = 0;     // number of the call at which the next flush is due
  uint64_t sampled_calls = 0;
  uint64_t rate = 0;          // the Rate in force since the last change (see rate.h); 0: none yet
  uint32_t call_gap = 0;      // calls from the last event to the next; 0: never armed
  uint32_t samples_left = 0;  // at this rung, before a decaying rate widens; 0: the rate does not
                              // decay

  uint64_t iterations = 0;       // loop iterations up to the last loop event that counted them
  uint64_t next_loop_flush = 0;  // iterations at which the next flush is due
  uint64_t bursts = 0;
  uint64_t loop_left = 0;      // iterations of the stretch or burst beyond loop_gap
  int32_t loop_gap = 0;        // the value that armed loop_countdown, same sign; 0: never armed
  uint32_t flush_is_next = 0;  // the next call is an event and may switch rates
  // Drawn when a burst begins (see schedule.h); one word, so that both are written at once.
  struct alignas(8) Behind {
    uint32_t length = 0;  // iterations of the stretch after the burst, if the end of the burst only
                          // begins it
    uint32_t gap = 0;     // in slots, up to the next burst; 0: not drawn
  } behind;
  uint64_t* optimized_slab = nullptr;  // counters of the instrumented copy of optimized code, or
                                       // null
  uint32_t flushes = 0;
  uint32_t optimized_samples = 0;  // calls that ran the instrumented copy of optimized code
};
static_assert(sizeof(MethodState) == 128);

// One transition from the host to compiled code on a thread's stack; they are linked from the
// innermost out. The invoke routine creates it, and a trap unwinds to it.
struct Activation {
  Activation* outer = nullptr;
  uint64_t stack_pointer = 0;  // where the invoke routine resumes
};

struct ThreadContext {
  uint64_t stack_limit = 0;   // compiled prologues trap when rsp is below; 0 when unattached
  uint32_t pending_trap = 0;  // TrapCode raised by a host function and not yet taken
  uint32_t trap_location = 0;
  uint64_t trap_detail = 0;
  uint64_t trap_pc = 0;  // where compiled code faulted; 0 for a trap that the host raised
  Activation* activation = nullptr;
  void* owner = nullptr;    // the attached thread's record in tiering/; null when unattached
  void* runtime = nullptr;  // owner of the methods whose states follow
  uint64_t random = 0;      // state of the gap generator
  // `samples_taken` is read by the worker. `sample_limit` is set by the worker: after that many
  // samples, each further one brakes its method's rate; 0: no limit. Relaxed: each is used by
  // itself.
  std::atomic<uint64_t> samples_taken{0};
  std::atomic<uint64_t> sample_limit{0};
  // Loop events that took a quick path (see fast_sample.h); for the worker to read.
  std::atomic<uint64_t> quick_loop_events{0};
  uint32_t method_capacity = 0;
  uint32_t thread_number = 0;  // 1, 2, ... in order of attaching
  uint32_t trap_method = 0;    // if a method without code was called: its number + 1; else 0
  // Number of compiled frames whose calls continue in the host's interpreter.
  uint32_t exits_to_host = 0;
  // State of the generator for probabilistic counters. Any start value works; best is a different
  // one for each thread.
  uint64_t counter_random = 0;
  LogRing* log = nullptr;      // for log probes; null: their records are lost (and counted)
  LoopTimer* loops = nullptr;  // for loop probes; null: no loop is timed
  // Return address of the call that a trap ended without a fault; 0: none. Set by trap_exit.
  uint64_t trap_return = 0;
  // Traps that the host raised and that were never taken; other threads may read it.
  std::atomic<uint64_t> traps_lost{0};
  // Interpreters decrement this at loops of methods that belong to no runtime.
  int32_t nobodys_countdown = 0;
  // The innermost frames that the last trap has unwound: addresses inside of the instructions that they
  // were at. Set by trap_exit; `trap_walked` until the trap is taken.
  static constexpr uint32_t kTrapFrames = 32;
  bool trap_walked = false;
  uint32_t trap_frame_count = 0;
  uint64_t trap_frames[kTrapFrames] = {};

  // A counter of the thread's optimized code; other threads may read it with relaxed loads.
  uint64_t& tally(uint32_t word) noexcept {
    return *(reinterpret_cast<uint64_t*>(this) - 1 - word);
  }

  // The state of a method of the runtime that the thread is attached to.
  MethodState& method(uint32_t index);
  // The state of any method, at the place where compiled code of this thread finds it.
  MethodState& any_method(uint32_t index) noexcept;
};

// Compiled code adds these to the context's address.
inline constexpr uint32_t kMethodsOffset = 4096;
inline constexpr uint32_t kStackLimitOffset = offsetof(ThreadContext, stack_limit);
inline constexpr uint32_t kRuntimeOffset = offsetof(ThreadContext, runtime);
inline constexpr uint32_t kQuickLoopEventsOffset = offsetof(ThreadContext, quick_loop_events);
inline constexpr uint32_t kPendingTrapOffset = offsetof(ThreadContext, pending_trap);
inline constexpr uint32_t kCounterRandomOffset = offsetof(ThreadContext, counter_random);
inline constexpr uint32_t kCallCountdownOffset = offsetof(MethodState, call_countdown);
inline constexpr uint32_t kLoopCountdownOffset = offsetof(MethodState, loop_countdown);
inline constexpr uint32_t kSlabOffset = offsetof(MethodState, slab);
inline constexpr uint32_t kOptimizedSlabOffset = offsetof(MethodState, optimized_slab);

// The largest number of methods in a context.
inline constexpr uint32_t kMaxMethods = 1u << 20;

// Optimized code counts in these words in front of the context (jit/code/tally_table.h). Word k
// lies at tally_offset(k) from the context's address.
inline constexpr uint32_t kTallyWords = 1u << 16;
inline constexpr uint32_t kTallyBytes = kTallyWords * 8;
constexpr int32_t tally_offset(uint32_t word) { return -8 * (static_cast<int32_t>(word) + 1); }

inline constexpr uint32_t kBlockMethods = 1u << 16;
inline constexpr uint32_t kBlocks = kMaxMethods / kBlockMethods;

// Returns the offset of a method's state from the address of its block. `index` < kMaxMethods.
constexpr uint32_t method_offset(uint32_t index) {
  return kMethodsOffset + index % kBlockMethods * static_cast<uint32_t>(sizeof(MethodState));
}
// Returns the offset, in TLS, of the address of the method's block from the context's address.
constexpr int32_t block_tls_offset(uint32_t index) {
  return static_cast<int32_t>(index / kBlockMethods * sizeof(void*));
}
// Returns the size of a context with the blocks for so many methods.
constexpr size_t context_bytes(uint32_t methods) {
  size_t blocks = (methods + kBlockMethods - 1) / kBlockMethods;
  return kMethodsOffset + blocks * kBlockMethods * sizeof(MethodState);
}

inline MethodState& ThreadContext::method(uint32_t index) {
  return *reinterpret_cast<MethodState*>(reinterpret_cast<char*>(this) + kMethodsOffset +
                                         index * sizeof(MethodState));
}

// Returns the context that unattached threads share. The slow paths re-arm its countdowns far
// ahead. Threads race on it; that costs time, but loses nothing.
ThreadContext& shared_context() noexcept;
// Returns the calling thread's context; never null. In an unattached thread, the shared one.
ThreadContext* current_context() noexcept;
// Makes `context` (null: the shared one) the calling thread's context, and returns the one before.
// Its first block must exist whatever its method_capacity is.
ThreadContext* exchange_context(ThreadContext* context) noexcept;
// Returns the offset of the TLS pointer from fs:0.
int32_t context_tls_offset() noexcept;

}  // namespace uptier::sampler
