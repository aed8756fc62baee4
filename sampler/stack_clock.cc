#include "sampler/stack_clock.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>

#include "sampler/fork.h"
#include "sampler/gap.h"

namespace uptier::sampler {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
// Periods are drawn from the mean +- kJitter / 1,024 of it.
constexpr uint64_t kJitter = 92;
// Periods of the event in a row that are equal: the kernel stops and restarts the event for a new
// one.
constexpr uint32_t kAlike = 8;

// Its address identifies our timers.
constinit const char g_cookie = 0;

timespec to_timespec(uint64_t ns) noexcept {
  return {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
}

// Uses system calls, not the C library's functions, because it runs in a signal handler.
void set_kernel_timer(int timer, int flags, uint64_t first_ns, uint64_t pause_ns) noexcept {
  itimerspec when{};
  when.it_value = to_timespec(first_ns);
  when.it_interval = to_timespec(pause_ns);
  ::syscall(SYS_timer_settime, timer, flags, &when, nullptr);
}

bool is_event_code(int code) noexcept { return code >= POLL_IN && code <= POLL_HUP; }

}  // namespace

// Signals of the event arrive while the thread runs, so none is pending when stop() has returned on
// it.
StackClock::~StackClock() {
  if (!of_this_process()) {
    if (fd_ >= 0) ::close(fd_);
    return;
  }
  stop();
  if (timer_ >= 0) ::syscall(SYS_timer_delete, timer_.load());
  if (fd_ >= 0) ::close(fd_);
}

bool StackClock::of_this_process() const noexcept { return made_at_fork_ == forks(); }

bool StackClock::make_event(int thread, int signal) noexcept {
  perf_event_attr a{};
  a.size = sizeof a;
  a.type = PERF_TYPE_SOFTWARE;
  a.config = PERF_COUNT_SW_TASK_CLOCK;
  a.sample_period = kSecond;  // arm() changes it
  a.disabled = 1;
  a.exclude_kernel = 1;  // an ordinary user may not sample the kernel
  a.exclude_hv = 1;
  a.wakeup_events = 1;
  auto fd =
      static_cast<int>(::syscall(SYS_perf_event_open, &a, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd < 0) return false;
  f_owner_ex owner{F_OWNER_TID, thread};
  if (::fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) != 0 || ::fcntl(fd, F_SETSIG, signal) != 0 ||
      ::fcntl(fd, F_SETOWN_EX, &owner) != 0) {
    ::close(fd);
    return false;
  }
  fd_ = fd;
  return true;
}

Status StackClock::make_timer(int thread, int signal) {
  struct sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event.sigev_value.sival_ptr = const_cast<char*>(&g_cookie);
  event._sigev_un._tid = thread;
  int timer = kNone;
  if (::syscall(SYS_timer_create, cpu_clock_, &event, &timer) != 0) {
    return Error{ErrorCode::kResourceExhausted,
                 std::string("sampling: the kernel refuses a timer: ") + std::strerror(errno)};
  }
  timer_ = timer;
  return {};
}

Status StackClock::make(SampleEngine engine, int thread, clockid_t cpu_clock, int signal) {
  assert(!made());
  made_at_fork_ = forks();
  cpu_clock_ = cpu_clock;
  random_ = static_cast<uint64_t>(thread) * 0x9e3779b97f4a7c15ull;
  if (engine == SampleEngine::kTaskClock && make_event(thread, signal)) return {};
  return make_timer(thread, signal);
}

// For the event it is the event's own count, which begins at 0; the two clocks are never compared.
uint64_t StackClock::now_ns() const noexcept {
  uint64_t now = 0;
  if (fd_ >= 0) {
    return ::syscall(SYS_read, fd_.load(), &now, sizeof now) == sizeof now ? now
                                                                           : covered_ns_.load();
  }
  timespec t{};
  ::clock_gettime(cpu_clock_, &t);
  return static_cast<uint64_t>(t.tv_sec) * kSecond + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t StackClock::draw(uint64_t period) noexcept {
  uint64_t state = random_.load(std::memory_order_relaxed);
  uint64_t part = next_random(state) >> 32;
  random_.store(state, std::memory_order_relaxed);
  return std::max<uint64_t>(
      1, period - period * kJitter / 1024 + (period * 2 * kJitter / 1024 * part >> 32));
}

// The timer is set to absolute times of the thread's clock, so no time is lost between two signals.
void StackClock::arm(uint64_t period_ns) noexcept {
  uint64_t drawn = draw(period_ns);
  drawn_.store(drawn, std::memory_order_relaxed);
  if (fd_ >= 0) {
    ::syscall(SYS_ioctl, fd_.load(), PERF_EVENT_IOC_PERIOD, &drawn);
  } else {
    uint64_t at = covered_ns_.load(std::memory_order_relaxed) + drawn;
    set_kernel_timer(timer_, TIMER_ABSTIME, at, drawn);
  }
}

void StackClock::disarm() noexcept {
  if (fd_ >= 0) {
    ::syscall(SYS_ioctl, fd_.load(), PERF_EVENT_IOC_DISABLE, 0);
  } else if (timer_ >= 0) {
    set_kernel_timer(timer_, 0, 0, 0);
  }
}

// Stores the new period before the first signal can come.
void StackClock::start(uint64_t period_ns) noexcept {
  assert(made() && period_ns != 0);
  if (!of_this_process()) return;
  stop();
  uint64_t now = now_ns();
  covered_ns_.store(now, std::memory_order_relaxed);
  began_ns_.store(now, std::memory_order_relaxed);
  period_.store(period_ns, std::memory_order_release);
  arm(period_ns);
  if (fd_ >= 0) ::syscall(SYS_ioctl, fd_.load(), PERF_EVENT_IOC_ENABLE, 0);
}

void StackClock::stop() noexcept {
  if (!made() || !of_this_process()) return;
  if (period_.exchange(0) == 0) return;
  disarm();
  asked_ns_.fetch_add(now_ns() - began_ns_.load(std::memory_order_relaxed),
                      std::memory_order_relaxed);
}

bool StackClock::is_mine(const siginfo_t& info) const noexcept {
  if (fd_ >= 0) return is_event_code(info.si_code) && info.si_fd == fd_;
  return timer_ >= 0 && info.si_code == SI_TIMER && info.si_value.sival_ptr == &g_cookie &&
         info.si_timerid == timer_;
}

bool StackClock::may_be_late(const siginfo_t& info) noexcept {
  if (info.si_code == SI_TIMER) return info.si_value.sival_ptr == &g_cookie;
  return is_event_code(info.si_code);
}

// stop() may run meanwhile on another thread; the later of the two disarms the clock.
uint64_t StackClock::take(const siginfo_t& info) noexcept {
  uint64_t period = period_.load(std::memory_order_acquire);
  if (period == 0) return 0;
  uint64_t covered = covered_ns_.load(std::memory_order_relaxed);
  uint64_t weight = 0;
  if (fd_ >= 0) {
    uint64_t now = now_ns();
    weight = now > covered ? now - covered : 0;
  } else {
    weight = drawn_ * (1 + static_cast<uint64_t>(std::max(info.si_overrun, 0)));
  }
  covered_ns_.store(covered + weight, std::memory_order_relaxed);
  if (fd_ < 0 || ++taken_ % kAlike == 0) arm(period);
  if (period_.load() == 0) disarm();
  return weight;
}

uint64_t StackClock::asked_ns() const noexcept {
  uint64_t over = asked_ns_.load(std::memory_order_relaxed);
  if (!running() || !of_this_process()) return over;
  return over + now_ns() - began_ns_.load(std::memory_order_relaxed);
}

}  // namespace uptier::sampler
