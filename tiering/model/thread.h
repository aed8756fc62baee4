// AttachedThread: the data that a runtime keeps for a thread that runs its methods.
//
// Everything that slow paths need is made at attach: context, slab arena, snapshot ring, alternate
// signal stack. None of it is allocated later. It is made and destroyed by the thread itself,
// because it sets the thread's signals.
//
//   Thread: its own thread, except `ring` (consumer side) and `epoch`.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "jit/code/faults.h"
#include "sampler/context.h"
#include "sampler/cost.h"
#include "sampler/log_ring.h"
#include "sampler/loop_timer.h"
#include "sampler/reservation.h"
#include "sampler/slab_arena.h"
#include "sampler/snapshot_ring.h"
#include "sampler/stack_sampler.h"
#include "tiering/events/events.h"
#include "tiering/model/look.h"
#include "tiering/model/sample_signal.h"
#include "tiering/model/stack.h"
#include "tiering/model/thread_stop.h"
#include "uptier/options.h"

namespace uptier::jit {
class CodeSpace;
struct HostExit;
class Routines;
class StubTable;
}  // namespace uptier::jit

namespace uptier::sampler {
class HostCode;
}  // namespace uptier::sampler

namespace uptier::tiering {

class AttachedThread {
 public:
  // For the calling thread. Its context carries `runtime`; `have_loops_ask` is called with it when
  // an invoke of the thread does not end.
  static Result<std::unique_ptr<AttachedThread>> create(void* runtime, const Options& options,
                                                        uint32_t number,
                                                        HaveLoopsAsk have_loops_ask = nullptr);

  sampler::ThreadContext& context() const {
    return *reinterpret_cast<sampler::ThreadContext*>(static_cast<char*>(context_memory_.data()) +
                                                      sampler::kTallyBytes);
  }
  sampler::MethodState& state(MethodId m) { return context().method(m.index()); }
  uint32_t number() const { return number_; }
  sampler::SnapshotRing& ring() { return *ring_; }
  sampler::SlabArena& slabs() { return slabs_; }
  sampler::LogRing& log() { return *log_; }
  const sampler::LogRing& log() const { return *log_; }
  sampler::LoopTimer& loops() { return loops_; }
  // The first executions of loops; the timer has filled kept() of them.
  std::vector<sampler::LoopTimer::Execution> first_loops;
  const sampler::LoopTimer& loops() const { return loops_; }
  sampler::StackSampler& sampler() { return sampler_; }
  const sampler::StackSampler& sampler() const { return sampler_; }
  // The data that walks of its samples use; set before the first sample. All outlive it.
  struct SampledCode {
    const jit::CodeSpace* space = nullptr;
    const jit::StubTable* stubs = nullptr;
    const jit::Routines* routines = nullptr;
    const sampler::HostCode* host = nullptr;
  };
  SampledCode sampled_code;
  sampler::CostMeter& cost() { return cost_; }
  // Returns the costs so far, including those of the quick paths of loops, which the meter does not
  // see.
  sampler::CostCounts cost_counts() const noexcept;
  // Returns the processor time of the thread, in ns. Thread: any.
  uint64_t cpu_ns() const noexcept;

  // Attach calls minus detach calls, and the number of ThreadScopes among them; used by the thread
  // only.
  uint32_t depth = 0;
  uint32_t scopes = 0;
  // The previous context, for nested runtimes on one thread.
  sampler::ThreadContext* outer = nullptr;
  // The reclamation epoch at the thread's last quiescent point; see reclaimer.h.
  std::atomic<uint64_t> epoch{0};

  // Frames of compiled code with a running host_resume, innermost first (stack_walk.h), on the
  // current stack. A trap that drops such frames also removes them here.
  const jit::HostExit* host_exits = nullptr;

  ThreadLooks looks;

  // Says whether the thread waits outside compiled code (Runtime::begin_blocked). While it does,
  // its current stack does not change from `stack_top` up, nor do its suspended stacks, so the
  // reclaimer may scan them.
  enum Blocked : uint32_t { kRunning, kBlocked, kLookedAt };
  std::atomic<uint32_t> blocked{kRunning};
  uintptr_t stack_top = 0;
  ThreadStacks stacks;  // other threads: between begin_look() and end_look()
  ThreadStop stop;
  uint64_t attached_cpu_ns = 0;
  uint64_t seen_cpu_ns = 0;  // at the worker's last tick

  // The owner: enters and leaves that state. leave_blocked waits while another thread looks.
  void enter_blocked(const void* top) noexcept;
  void leave_blocked() noexcept;
  // Other threads: keeps the thread in that state. Returns false if it is running.
  bool begin_look() noexcept;
  void end_look() noexcept;

  // The iterations that a frame runs in the instrumented copy of a loop; the last burst that began.
  // See runtime/observed_rounds.h.
  struct Burst {
    uint32_t rounds_left = 0;
    uint64_t began_ns = 0;
  };
  Burst burst;

  GuestEvents events;  // its records while guest frames are below

  // Losses that only this thread counts.
  std::atomic<uint64_t> samples_without_copy{0};
  std::atomic<uint64_t> slabs_refused{0};
  std::atomic<uint64_t> flushes_delayed{0};

 private:
  struct Parts {
    sampler::Reservation context;
    sampler::SlabArena slabs;
    std::unique_ptr<sampler::SnapshotRing> ring;
    std::unique_ptr<sampler::LogRing> log;
    jit::AltStack alt_stack;
  };
  AttachedThread(uint32_t number, int sample_signal, Parts parts);

  uint32_t number_;
  sampler::Reservation context_memory_;
  sampler::SlabArena slabs_;
  std::unique_ptr<sampler::SnapshotRing> ring_;
  std::unique_ptr<sampler::LogRing> log_;
  jit::AltStack alt_stack_;
  jit::UnblockedFaults unblocked_;
  UnblockedSamples unblocked_samples_;
  sampler::StackSampler sampler_;  // its clock stops before the signal is blocked again
  sampler::LoopTimer loops_;
  // The cost of reads is not subtracted here: it is not known yet when the first thread attaches.
  sampler::CycleClock raw_clock_;
  sampler::CostMeter cost_{raw_clock_};
  clockid_t cpu_clock_ = 0;
};

}  // namespace uptier::tiering
