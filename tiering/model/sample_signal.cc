#include "tiering/model/sample_signal.h"

#include <cerrno>

#include "jit/code/sample_walk.h"
#include "sampler/context.h"
#include "tiering/model/shared_signal.h"
#include "tiering/model/thread.h"

namespace uptier::tiering {
namespace {

// Says whether a sampler of the calling thread has taken the signal.
bool take_sample(const siginfo_t& info, void* machine) noexcept {
  bool elsewhere = false;
  // `outer` is null while the thread attaches.
  for (sampler::ThreadContext* c = sampler::current_context();
       c != nullptr && c->owner != nullptr;) {
    auto* t = static_cast<AttachedThread*>(c->owner);
    if (t->sampler().is_mine(info)) {
      t->sampler().take(info, machine, elsewhere);
      return true;
    }
    c = t->outer;
    elsewhere = true;
  }
  return false;
}

void on_sample_signal(int signal, siginfo_t* info, void* machine) {
  int saved_errno = errno;
  if (!take_sample(*info, machine)) {
    // The clock may have been destroyed since; the process must not end because of that.
    bool drop = sampler::StackClock::may_be_late(*info) &&
                (info->si_code == SI_TIMER || !host_handles_signal(signal));
    if (!drop) pass_on_signal(signal, info, machine);
  }
  errno = saved_errno;
}

}  // namespace

int sample_signal(const Options& o) noexcept {
  return o.sample_signal == 0 ? SIGRTMIN + 5 : static_cast<int>(o.sample_signal);
}

SampleSignal::~SampleSignal() {
  if (taken_) release_signal(number_, on_sample_signal);
}

Status SampleSignal::take() {
  if (taken_) return {};
  Status s = take_signal(number_, on_sample_signal, SA_RESTART, "sampling (option sample_signal)");
  taken_ = s.ok();
  return s;
}

UnblockedSamples::UnblockedSamples(int signal) noexcept : signal_(signal) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, signal);
  if (::pthread_sigmask(SIG_UNBLOCK, &set, &before) != 0) return;
  was_blocked_ = sigismember(&before, signal) == 1;
}

UnblockedSamples::~UnblockedSamples() {
  if (!was_blocked_) return;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void walk_sampled_thread(void* thread, void* machine, sampler::StackRecord& out) noexcept {
  auto& t = *static_cast<AttachedThread*>(thread);
  if (t.sampled_code.space == nullptr) return;
  const NativeStack& stack = t.stacks.current();
  jit::walk_sample({.space = *t.sampled_code.space,
                    .stubs = *t.sampled_code.stubs,
                    .routines = *t.sampled_code.routines,
                    .host = *t.sampled_code.host,
                    .innermost = t.context().activation,
                    .stack_low = stack.low,
                    .stack_high = stack.high},
                   machine, out);
  bool blocked = t.blocked.load(std::memory_order_relaxed) != AttachedThread::kRunning;
  bool of_host =
      out.leaf == sampler::SampleLeaf::kHost || out.leaf == sampler::SampleLeaf::kRuntime;
  if (blocked && of_host) out.leaf = sampler::SampleLeaf::kBlocked;
}

}  // namespace uptier::tiering
