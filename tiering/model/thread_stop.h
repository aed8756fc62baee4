// Stopping: how an invoke is ended early.
//
//   interrupt()   number of the innermost invoke -> the thread's mailbox; its timer fires at once
//   timeout       the thread's timer fires when the time is over
//   the signal    of the timer, on the thread, in its handler: must the innermost invoke end? if so
//                   in a body       it ends there (jit/code/end_body.h)
//                   anywhere else   the stack limit is raised, so that the next prologue traps; a trap
//                                   is pending, so that host calls that may trap end with it; and
//                                   the timer fires again, 50 us to 5 ms later, until it has ended
//
// The law: an interrupt is for the invoke whose number is in the mailbox. Numbers are never reused,
// so it ends that invoke or, if that is over, none. A timeout is for its invoke and all invokes
// inside: each has the earliest of their deadlines. Only bodies are ended, where no lock is held.
//
// The thread sets the timer to the wanted time, and then computes the wanted time again. Another
// thread that puts a number into the mailbox fires the timer afterwards. So either the signal
// comes, or the number is seen.
//
//   Thread: a ThreadStop belongs to its thread and the thread's signal handler; but other threads fill the
//   mailbox, read `number`, and fire the timer, holding Stops' mutex.
#pragma once

#include <signal.h>

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sampler/context.h"
#include "uptier/result.h"
#include "uptier/thread_safety.h"

namespace uptier::tiering {

class ThreadStacks;

// One invoke on a stack; lies in the frame of the C++ function that calls code.
struct InvokeFrame {
  static constexpr uint64_t kNever = UINT64_MAX;

  InvokeFrame* outer = nullptr;
  const sampler::Activation* before = nullptr;  // the innermost activation at its begin: still so
                                                // until its code runs
  uint64_t number = 0;
  uint64_t deadline_ns = kNever;  // the earlier of its own and the outer one, by CLOCK_MONOTONIC
  bool asked = false;             // it has been interrupted
};

// Makes each loop of a runtime's optimized code poll once; called from a signal handler.
using HaveLoopsAsk = void (*)(void* runtime) noexcept;

// The limits of a call of code.
struct CallLimits {
  uint64_t deadline_ns = InvokeFrame::kNever;
  uint64_t fuel = 0;  // 0: Options::fuel
};

class ThreadStop {
 public:
  ThreadStop() = default;
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;
  ~ThreadStop();

  // For the calling thread. Both outlive this. `have_loops_ask`: null does nothing.
  void set_up(sampler::ThreadContext& context, const ThreadStacks& stacks,
              HaveLoopsAsk have_loops_ask);

  // Begins an invoke; the timer must exist if it has a deadline of its own (kNever: none).
  void begin(InvokeFrame& f, uint64_t deadline_ns) noexcept {
    assert(context_ != nullptr && innermost_ != &f);
    f.outer = innermost_;
    f.before = context_->activation;
    f.number = ++last_number_;
    f.deadline_ns = deadline_ns;
    if (f.outer != nullptr && f.outer->deadline_ns < deadline_ns) {
      f.deadline_ns = f.outer->deadline_ns;
    }
    std::atomic_signal_fence(std::memory_order_release);  // the handler sees it complete
    innermost_ = &f;
    number_.store(f.number, std::memory_order_release);
    if (at_work_ || f.deadline_ns != InvokeFrame::kNever) begin_slow();
  }
  // Ends an invoke. Returns whether its stack limit was raised: then the stack was not exhausted.
  bool end(const InvokeFrame& f) noexcept {
    assert(innermost_ == &f);  // nested invokes end in reverse order
    innermost_ = f.outer;
    number_.store(f.outer == nullptr ? 0 : f.outer->number, std::memory_order_release);
    return at_work_ && end_slow(f.deadline_ns);
  }
  // Change stacks: leave_stack returns the innermost invoke of the old stack; enter_stack is given
  // the innermost invoke of the new one.
  InvokeFrame* leave_stack() noexcept;
  void enter_stack(InvokeFrame* innermost) noexcept;

  // Handles the signal. `machine`: the interrupted state (ucontext_t).
  void tick(void* machine) noexcept;
  // Says whether the thread knows that the innermost invoke must end.
  bool due() const noexcept { return raised_; }
  // Returns the time of CLOCK_MONOTONIC after the timeout.
  static uint64_t deadline_after(uint64_t timeout_ns) noexcept;

  // Called by other threads, and the thread itself; the caller holds Stops' mutex.
  Status make_timer(int signal);
  // Asks the innermost invoke to end. Errors: kResourceExhausted if the mailbox is full.
  Status ask() noexcept;

 private:
  static constexpr uint64_t kNow = 0;
  static constexpr int kNoTimer = -1;

  void begin_slow() noexcept;
  bool end_slow(uint64_t deadline_ns) noexcept;
  void take_mail() noexcept;
  uint64_t wanted() const noexcept;
  void arrange() noexcept;
  void set_timer(uint64_t at) const noexcept;
  void raise_limit() noexcept;
  void lower_limit() noexcept;

  sampler::ThreadContext* context_ = nullptr;
  const ThreadStacks* stacks_ = nullptr;
  HaveLoopsAsk have_loops_ask_ = nullptr;
  int thread_ = 0;  // the kernel's number
  // Volatile: the thread's signal handler reads and writes them between any two instructions.
  InvokeFrame* volatile innermost_ = nullptr;
  volatile bool at_work_ = false;  // there may be a timer, a raised limit or a pending trap of ours
  volatile bool raised_ = false;
  volatile bool pending_ = false;  // a trap of ours
  volatile uint64_t limit_ = 0;    // the real stack limit, while it is raised
  volatile uint32_t ticks_ = 0;    // signals that did not end the innermost invoke
  uint64_t last_number_ = 0;
  std::atomic<uint64_t> number_{0};              // of the innermost invoke; 0: none
  std::array<std::atomic<uint64_t>, 8> mail_{};  // numbers of invokes that must end
  std::atomic<int> timer_{kNoTimer};
};

// The threads of a runtime that can be stopped.
class Stops {
 public:
  explicit Stops(int signal) : signal_(signal) {}
  ~Stops();
  Stops(const Stops&) = delete;
  Stops& operator=(const Stops&) = delete;

  void add(ThreadStop& t, uint32_t number);
  void remove(ThreadStop& t);
  // 0: all threads. Errors: kNotFound; those of a timer.
  Status interrupt(uint32_t thread);
  // Makes a timer for an invoke with a deadline.
  Status prepare(ThreadStop& t);
  int signal() const { return signal_; }

 private:
  struct Row {
    ThreadStop* stop;
    uint32_t number;
  };
  Status prepare_locked(ThreadStop& t) UPTIER_REQUIRES(mutex_);

  const int signal_;
  CheckedLock<std::mutex> mutex_;
  std::vector<Row> threads_ UPTIER_GUARDED_BY(mutex_);
  // Read without the mutex by the destructor only.
  bool handled_ = false;  // the handler is installed
};

// Unblocks the signal while guest code runs on the thread; the destructor restores the mask.
class SignalOpened {
 public:
  explicit SignalOpened(int signal) noexcept;
  ~SignalOpened();
  SignalOpened(const SignalOpened&) = delete;
  SignalOpened& operator=(const SignalOpened&) = delete;

 private:
  int signal_;
  bool was_blocked_ = false;
};

}  // namespace uptier::tiering
