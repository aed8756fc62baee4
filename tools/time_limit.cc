#include "tools/time_limit.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/leave.h"

namespace uptier::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kGrace = std::chrono::milliseconds(500);
constexpr auto kPause = std::chrono::milliseconds(20);
// Beyond what a clock can be set to: some years.
constexpr double kMostSeconds = 1e8;

}  // namespace

int timed_out(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "timeout: the program has run for %g s", seconds);
  return fail(kTimedOut, text);
}

// Signals are for the thread of the program.
TimeLimit::TimeLimit(Runtime& runtime, double seconds) : runtime_(runtime), seconds_(seconds) {
  if (seconds == 0) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  watcher_ = std::thread([this] { watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TimeLimit::~TimeLimit() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

void TimeLimit::watch() {
  std::unique_lock lock(mutex_);
  auto is_over = [&] { return over_; };
  auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(std::min(seconds_, kMostSeconds)));
  if (changed_.wait_until(lock, end, is_over)) return;
  for (auto last = Clock::now() + kGrace; Clock::now() < last;) {
    if (Status s = runtime_.interrupt(); !s) break;
    if (changed_.wait_for(lock, kPause, is_over)) return;
  }
  leave(timed_out(seconds_));
}

}  // namespace uptier::tools
