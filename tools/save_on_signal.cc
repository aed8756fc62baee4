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

// Not std::thread, which says by an exception that a thread is refused.
SaveOnSignal::SaveOnSignal(Runtime& runtime) : runtime_(runtime) {
  auto run = [](void* it) -> void* {
    static_cast<SaveOnSignal*>(it)->wait();
    return nullptr;
  };
  waits_ = pthread_create(&waiter_, nullptr, run, this) == 0;
  if (waits_) return;
  fail(kOk, "the system refused a thread: if a signal ends the program, no profile is saved");
  let_through();
}

SaveOnSignal::~SaveOnSignal() {
  if (!waits_) return;
  over_.store(true);
  // To the thread alone; it is what the thread waits for, so no handler runs.
  pthread_kill(waiter_, SIGTERM);
  pthread_join(waiter_, nullptr);
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
