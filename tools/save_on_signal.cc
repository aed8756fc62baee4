#include "tools/save_on_signal.h"

#include <pthread.h>

#include "tools/fail.h"

namespace uptier::tools {
namespace {

sigset_t held() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

void let_through() {
  sigset_t set = held();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

HeldSignals::HeldSignals() {
  sigset_t set = held();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

HeldSignals::~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

SaveOnSignal::SaveOnSignal(Runtime& runtime) : runtime_(runtime), waiter_([this] { wait(); }) {}

SaveOnSignal::~SaveOnSignal() {
  over_.store(true);
  // To the thread alone; it is what the thread waits for, so no handler runs.
  pthread_kill(waiter_.native_handle(), SIGTERM);
  waiter_.join();
}

void SaveOnSignal::wait() {
  sigset_t set = held();
  int signal = 0;
  if (sigwait(&set, &signal) != 0 || over_.load()) return;
  if (Status saved = runtime_.save_profile(); !saved) fail(kOk, saved.error().message);
  // Nobody catches it, so this is where the process ends. One that is ignored does not get here.
  let_through();
  raise(signal);
}

}  // namespace uptier::tools
