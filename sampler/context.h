// ThreadContext: all that compiled code knows of its thread, reached by one TLS pointer.
//
// `t_context` is initial-exec TLS, so its offset from the thread pointer is one constant for all
// threads and code reaches the context with one load. An unattached thread sees a shared context
// whose countdowns are never due: its calls run plain and unobserved, and nothing it touches
// faults.
//
// The context is one reservation: header, then one MethodState a method of the runtime that the thread
// is attached to. Pages are touched when their methods first run on the thread.
//
// States are found by blocks of kBlockMethods: TLS has an address for each, of which the first is the
// context's. Of a block that the context does not have, all threads use the first block of the shared
// context; there the states of several methods are one.
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

// What one thread knows of one method: a cache line for what happens at calls, one for loops, where
// the commonest slow paths find all they need (see fast_sample.h). Compiled code knows the first 16
// bytes and optimized_slab; the rest belongs to the slow paths (see schedule.h). All zero means never
// seen: the first call and the first loop iteration are events, which arm the countdowns. `calls`,
// `iterations`, `sampled_calls` and `bursts` are stored with relaxed atomics: the worker reads them
// as they go.
struct alignas(64) MethodState {
  int32_t call_countdown = 0;  // calls left before the next event; the event is due below zero
  int32_t loop_countdown = 0;  // > 0: iterations until the next burst; < 0: minus those left in one
  uint64_t* slab = nullptr;    // counters of the instrumented copy, or null until there is one
  uint64_t calls = 0;          // number of the call at the last event, 1 is the first
  uint64_t next_sample = 0;    // number of the call that is sampled next
  uint64_t next_flush = 0;     // number of the call at which the next flush is due
  uint64_t sampled_calls = 0;
  uint64_t rate = 0;          // Rate in force since the last switch (see rate.h); 0: none yet
  uint32_t call_gap = 0;      // calls from the last event to the next; 0: never armed
  uint32_t samples_left = 0;  // at this rung, before a decaying rate widens; 0: it does not

  uint64_t iterations = 0;       // loop iterations up to the last loop event that counted them
  uint64_t next_loop_flush = 0;  // iterations at which the next flush is due
  uint64_t bursts = 0;
  uint64_t loop_left = 0;      // iterations of the stretch or burst beyond loop_gap
  int32_t loop_gap = 0;        // what loop_countdown was last armed with, same sign; 0: never armed
  uint32_t flush_is_next = 0;  // the next call is an event and may switch rates
  // Of a burst, what was drawn when it began (see schedule.h); one word, so that both go at once.
  struct alignas(8) Behind {
    uint32_t length = 0;  // iterations of the stretch behind it, if its end is nothing but that
    uint32_t gap = 0;     // in slots, up to the next burst; 0: not drawn
  } behind;
  uint64_t* optimized_slab = nullptr;  // what the copy of optimized code counts in; null until then
  uint32_t flushes = 0;
  uint32_t optimized_samples = 0;  // calls that ran the instrumented copy of optimized code
};
static_assert(sizeof(MethodState) == 128);

// One host -> compiled transition on a thread's stack, innermost first. Made by the invoke routine;
// a trap unwinds to it.
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
  void* runtime = nullptr;  // whose methods the states below are of
  uint64_t random = 0;      // state of the gap generator
  // Samples taken so far, for the worker to read, and the number after which each brakes its
  // method's rate, for the worker to set; 0: none does. Relaxed: each is read for itself.
  std::atomic<uint64_t> samples_taken{0};
  std::atomic<uint64_t> sample_limit{0};
  // Loop events that took a quick path (see fast_sample.h); for the worker to read.
  std::atomic<uint64_t> quick_loop_events{0};
  uint32_t method_capacity = 0;
  uint32_t thread_number = 0;  // 1, 2, ... in order of attaching
  uint32_t trap_method = 0;    // of a call of a method without code, its number + 1; else 0
  // Frames of compiled code below which the host's interpreter goes on with their calls.
  uint32_t exits_to_host = 0;
  // State of the generator of probabilistic counters; any start will do, best one of each thread's.
  uint64_t counter_random = 0;
  LogRing* log = nullptr;      // of log probes; null: their records are lost (counted)
  LoopTimer* loops = nullptr;  // of loop probes; null: no loop is timed
  // Where the call returns to that a trap ends without a fault; 0: there was none. Set by trap_exit.
  uint64_t trap_return = 0;
  // Traps that the host raised and nobody took; for others to read.
  std::atomic<uint64_t> traps_lost{0};
  // What an interpreter decrements in the place of the loops of a method that is nobody's.
  int32_t nobodys_countdown = 0;

  // The words that the thread's optimized code counts in; others may read them, relaxed.
  uint64_t& tally(uint32_t word) noexcept {
    return *(reinterpret_cast<uint64_t*>(this) - 1 - word);
  }

  // Of a method of the runtime that the thread is attached to.
  MethodState& method(uint32_t index);
  // Of any method: where compiled code of this thread finds it.
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

// Methods that a context can hold at most.
inline constexpr uint32_t kMaxMethods = 1u << 20;

// Words in front of the context in which optimized code counts (jit/code/tally_table.h). Word k lies at
// tally_offset(k) from the context's address.
inline constexpr uint32_t kTallyWords = 1u << 16;
inline constexpr uint32_t kTallyBytes = kTallyWords * 8;
constexpr int32_t tally_offset(uint32_t word) { return -8 * (static_cast<int32_t>(word) + 1); }

inline constexpr uint32_t kBlockMethods = 1u << 16;
inline constexpr uint32_t kBlocks = kMaxMethods / kBlockMethods;

// Returns the displacement of a method's state from the address of its block. `index` < kMaxMethods.
constexpr uint32_t method_offset(uint32_t index) {
  return kMethodsOffset + index % kBlockMethods * static_cast<uint32_t>(sizeof(MethodState));
}
// Returns the displacement of the address of its block from the context's, in TLS.
constexpr int32_t block_tls_offset(uint32_t index) {
  return static_cast<int32_t>(index / kBlockMethods * sizeof(void*));
}
// Returns the bytes of a context that has the blocks of so many methods.
constexpr size_t context_bytes(uint32_t methods) {
  size_t blocks = (methods + kBlockMethods - 1) / kBlockMethods;
  return kMethodsOffset + blocks * kBlockMethods * sizeof(MethodState);
}

inline MethodState& ThreadContext::method(uint32_t index) {
  return *reinterpret_cast<MethodState*>(reinterpret_cast<char*>(this) + kMethodsOffset +
                                         index * sizeof(MethodState));
}

// Returns the context that unattached threads share. Its countdowns are re-armed far away by the
// slow paths; threads race on it, and nothing is lost but time.
ThreadContext& shared_context() noexcept;
// Returns the calling thread's context; never null. In an unattached thread, the shared one.
ThreadContext* current_context() noexcept;
// Makes `context` (null: the shared one) the calling thread's. Its first block is there whatever its
// method_capacity is. Returns the one before.
ThreadContext* exchange_context(ThreadContext* context) noexcept;
// Returns the displacement of the TLS pointer from fs:0.
int32_t context_tls_offset() noexcept;

}  // namespace uptier::sampler
