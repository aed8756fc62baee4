#include "tiering/model/thread_stop.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>

#include "jit/code/end_body.h"
#include "tiering/model/shared_signal.h"
#include "tiering/model/thread.h"

namespace uptier::tiering {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
// The pause after a signal that did not end the invoke, by the number of signals so far. The pauses
// are shorter at first, to catch code that is nearly always in host functions, and long at last, to
// leave alone a host function that waits.
constexpr uint64_t kUsualPause = 1'000'000, kShortPause = 50'000, kLongPause = 5'000'000;
constexpr uint32_t kShortAfter = 2, kLongAfter = 1000;
// The point where the processor takes a signal is not random: a few instructions between two calls
// may never be hit. So after every kLoopsAsk signals, loops of optimized code poll.
constexpr uint32_t kLoopsAsk = 16;
// A trap raised by the host is usually taken soon. After so many signals, do not wait for it any
// more.
constexpr uint32_t kPatience = 3;

constexpr auto kInterrupted = static_cast<uint32_t>(TrapCode::kInterrupted);

uint64_t monotonic_ns() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * kSecond + static_cast<uint64_t>(t.tv_nsec);
}

timespec to_timespec(uint64_t ns) noexcept {
  return {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
}

// Uses system calls, not the C library's timers, which may allocate: it runs in a signal handler.
void set_kernel_timer(int timer, int flags, uint64_t first_ns, uint64_t pause_ns) noexcept {
  itimerspec when{};
  when.it_value = to_timespec(first_ns);
  when.it_interval = to_timespec(pause_ns);
  ::syscall(SYS_timer_settime, timer, flags, &when, nullptr);
}

}  // namespace

// ---- The thread ------------------------------------------------------------------------------

ThreadStop::~ThreadStop() {
  int timer = timer_.load(std::memory_order_relaxed);
  if (timer != kNoTimer) ::syscall(SYS_timer_delete, timer);
}

void ThreadStop::set_up(sampler::ThreadContext& context, const ThreadStacks& stacks,
                        HaveLoopsAsk have_loops_ask) {
  context_ = &context;
  stacks_ = &stacks;
  have_loops_ask_ = have_loops_ask;
  thread_ = static_cast<int>(::gettid());
}

// An earlier stop was raised for the outer invoke. Its timer fires again if that invoke is to end
// as well.
void ThreadStop::begin_slow() noexcept {
  assert(innermost_ != nullptr);
  InvokeFrame& f = *innermost_;
  bool was_raised = raised_;
  lower_limit();
  at_work_ = true;
  ticks_ = 0;
  bool same = f.outer != nullptr && f.outer->deadline_ns == f.deadline_ns && !f.outer->asked;
  if (!same || was_raised) arrange();
}

bool ThreadStop::end_slow(uint64_t deadline_ns) noexcept {
  bool was_raised = raised_;
  bool quiet = !was_raised && ticks_ == 0;
  lower_limit();
  ticks_ = 0;
  InvokeFrame* f = innermost_;
  if (quiet && f != nullptr && f->deadline_ns == deadline_ns && !f->asked) return false;
  at_work_ = false;  // the handler may set it at any time
  arrange();
  if (wanted() != InvokeFrame::kNever) at_work_ = true;
  return was_raised;
}

InvokeFrame* ThreadStop::leave_stack() noexcept {
  assert(context_ != nullptr);
  InvokeFrame* left = innermost_;
  innermost_ = nullptr;  // from here on the handler raises nothing
  lower_limit();
  return left;
}

void ThreadStop::enter_stack(InvokeFrame* innermost) noexcept {
  innermost_ = innermost;
  number_.store(innermost == nullptr ? 0 : innermost->number, std::memory_order_release);
  if (timer_.load(std::memory_order_relaxed) == kNoTimer) return;
  ticks_ = 0;
  at_work_ = false;
  take_mail();
  arrange();
  if (wanted() != InvokeFrame::kNever) at_work_ = true;
}

void ThreadStop::tick(void* machine) noexcept {
  take_mail();
  InvokeFrame* f = innermost_;
  if (f == nullptr || wanted() != kNow) return arrange();
  at_work_ = true;
  ticks_ = ticks_ + 1;
  int timer = timer_.load(std::memory_order_relaxed);
  if (ticks_ == kShortAfter) set_kernel_timer(timer, 0, kShortPause, kShortPause);
  if (ticks_ == kLongAfter) set_kernel_timer(timer, 0, kLongPause, kLongPause);
  sampler::ThreadContext& c = *context_;
  if (ticks_ % kLoopsAsk == 0 && have_loops_ask_ != nullptr) have_loops_ask_(c.runtime);
  if (c.activation == f->before) return;  // not yet in its code, or no longer
  bool host_raised = c.pending_trap != 0 && c.pending_trap != kInterrupted;
  if (host_raised && ticks_ <= kPatience) return;
  if (jit::end_body(machine, TrapCode::kInterrupted)) return;
  raise_limit();
}

// The handler may run in the middle of any of these functions, and can continue from any state.

void ThreadStop::raise_limit() noexcept {
  sampler::ThreadContext& c = *context_;
  if (!raised_) {
    limit_ = c.stack_limit;
    raised_ = true;
    c.stack_limit = UINT64_MAX;
  }
  if (c.pending_trap != 0) return;
  c.trap_detail = 0;
  c.trap_pc = 0;
  c.trap_location = 0;
  c.trap_method = 0;
  pending_ = true;
  c.pending_trap = kInterrupted;
}

void ThreadStop::lower_limit() noexcept {
  sampler::ThreadContext& c = *context_;
  if (raised_) c.stack_limit = limit_;
  raised_ = false;
  if (pending_ && c.pending_trap == kInterrupted) c.pending_trap = 0;
  pending_ = false;
}

// Drops the numbers of invokes that are over, unless a suspended stack may hold such an invoke.
void ThreadStop::take_mail() noexcept {
  for (std::atomic<uint64_t>& letter : mail_) {
    uint64_t number = letter.load(std::memory_order_acquire);
    if (number == 0) continue;
    InvokeFrame* f = innermost_;
    while (f != nullptr && f->number != number) f = f->outer;
    if (f != nullptr) f->asked = true;
    if (f != nullptr || !stacks_->any_suspended()) letter.store(0, std::memory_order_release);
  }
}

// Returns the time at which the timer is to fire.
uint64_t ThreadStop::wanted() const noexcept {
  const InvokeFrame* f = innermost_;
  if (f == nullptr) return InvokeFrame::kNever;
  if (f->asked) return kNow;
  if (f->deadline_ns == InvokeFrame::kNever) return InvokeFrame::kNever;
  return monotonic_ns() >= f->deadline_ns ? kNow : f->deadline_ns;
}

void ThreadStop::arrange() noexcept {
  if (timer_.load(std::memory_order_relaxed) == kNoTimer) return;
  for (;;) {
    uint64_t at = wanted();
    set_timer(at);
    take_mail();
    if (wanted() == at) return;
  }
}

void ThreadStop::set_timer(uint64_t at) const noexcept {
  int timer = timer_.load(std::memory_order_relaxed);
  if (at == InvokeFrame::kNever) return set_kernel_timer(timer, 0, 0, 0);
  if (at == kNow) return set_kernel_timer(timer, 0, 1, kUsualPause);
  set_kernel_timer(timer, TIMER_ABSTIME, at, kUsualPause);
}

uint64_t ThreadStop::deadline_after(uint64_t timeout_ns) noexcept {
  uint64_t now = monotonic_ns();
  return timeout_ns < InvokeFrame::kNever - now ? now + timeout_ns : InvokeFrame::kNever;
}

// ---- The signal ------------------------------------------------------------------------------

namespace {

constinit const char g_cookie = 0;  // its address identifies our timers

void on_signal(int signal, siginfo_t* info, void* machine) {
  int saved_errno = errno;
  bool ours = info->si_code == SI_TIMER && info->si_value.sival_ptr == &g_cookie;
  void* owner = sampler::current_context()->owner;
  if (!ours) {
    pass_on_signal(signal, info, machine);
  } else if (owner != nullptr) {
    static_cast<AttachedThread*>(owner)->stop.tick(machine);
  }
  errno = saved_errno;
}

}  // namespace

Status ThreadStop::make_timer(int signal) {
  if (timer_.load(std::memory_order_relaxed) != kNoTimer) return {};
  struct sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event.sigev_value.sival_ptr = const_cast<char*>(&g_cookie);
  event._sigev_un._tid = thread_;
  int timer = kNoTimer;
  if (::syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) != 0) {
    return Error{ErrorCode::kResourceExhausted,
                 std::string("interrupt: the kernel refuses a timer: ") + std::strerror(errno)};
  }
  timer_.store(timer, std::memory_order_release);
  return {};
}

Status ThreadStop::ask() noexcept {
  uint64_t number = number_.load(std::memory_order_acquire);
  if (number == 0) return {};
  auto holds = [](uint64_t n) {
    return [n](const std::atomic<uint64_t>& letter) { return letter.load() == n; };
  };
  if (std::ranges::none_of(mail_, holds(number))) {
    auto empty = std::ranges::find_if(mail_, holds(0));
    if (empty == mail_.end()) {
      return Error{ErrorCode::kResourceExhausted,
                   "interrupt: the thread has not noticed the last interrupts yet: try again"};
    }
    empty->store(number);
  }
  set_timer(kNow);
  return {};
}

// ---- The threads of a runtime ------------------------------------------------------------------

Stops::~Stops() {
  if (handled_) release_signal(signal_, on_signal);
}

void Stops::add(ThreadStop& t, uint32_t number) {
  assert(number != 0);  // 0 means all threads
  Held lock(mutex_);
  threads_.push_back({&t, number});
}

void Stops::remove(ThreadStop& t) {
  Held lock(mutex_);
  std::erase_if(threads_, [&](const Row& r) { return r.stop == &t; });
}

Status Stops::prepare(ThreadStop& t) {
  Held lock(mutex_);
  return prepare_locked(t);
}

Status Stops::prepare_locked(ThreadStop& t) {
  if (!handled_) {
    // No SA_RESTART: calls that wait are to return.
    Status s = take_signal(signal_, on_signal, 0, "interrupt (option interrupt_signal)");
    if (!s) return s;
    handled_ = true;
  }
  return t.make_timer(signal_);
}

// Asks all threads, even if one of them cannot be asked.
Status Stops::interrupt(uint32_t thread) {
  Held lock(mutex_);
  Status status;
  bool found = thread == 0;
  for (const Row& r : threads_) {
    if (thread != 0 && r.number != thread) continue;
    found = true;
    Status s = prepare_locked(*r.stop);
    if (s) s = r.stop->ask();
    if (!s) status = s;
  }
  if (found) return status;
  return Error{ErrorCode::kNotFound,
               "interrupt: no thread with number " + std::to_string(thread) + " is attached"};
}

namespace {

// The state of the signal in the thread's mask, when it was last read.
struct Looked {
  int signal = 0;
  bool blocked = false;
};
constinit thread_local Looked t_looked;

}  // namespace

// This system call takes ten times as long as a call of code. So it is skipped until the signal is
// in use, on threads that did not block the signal when they first came here.
SignalOpened::SignalOpened(int signal) noexcept : signal_(signal) {
  if (signal == 0) return;
  bool used = is_signal_taken(signal);
  if (!used && t_looked.signal == signal && !t_looked.blocked) return;
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, signal);
  if (::pthread_sigmask(SIG_UNBLOCK, &set, &before) != 0) return;
  was_blocked_ = sigismember(&before, signal) == 1;
  t_looked = {signal, was_blocked_};
}

SignalOpened::~SignalOpened() {
  if (!was_blocked_) return;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace uptier::tiering
