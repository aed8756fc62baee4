#include "tiering/model/shared_signal.h"

#include <atomic>
#include <cassert>
#include <mutex>
#include <string>

#include "jit/code/global_locks.h"

namespace uptier::tiering {
namespace {

// Global because a signal handler gets no argument from us. The lock of the fault handlers guards
// them.
constinit struct sigaction g_previous[_NSIG] = {};
constinit SignalHandler g_ours[_NSIG] = {};
constinit std::atomic<unsigned> g_users[_NSIG] = {};  // whether there are users may be read without
                                                      // it

}  // namespace

Status take_signal(int signal, SignalHandler ours, int flags, const char* what) {
  std::lock_guard lock(jit::global_lock(jit::GlobalLock::kFaultHandlers));
  if (g_users[signal] != 0 && g_ours[signal] != ours) {
    return Error{ErrorCode::kInvalidArgument, std::string(what) + ": signal " +
                                                  std::to_string(signal) +
                                                  " serves another purpose of the library's"};
  }
  if (g_users[signal] == 0) {
    struct sigaction action = {};
    action.sa_sigaction = ours;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
    sigemptyset(&action.sa_mask);
    if (::sigaction(signal, nullptr, &g_previous[signal]) != 0 ||
        ::sigaction(signal, &action, nullptr) != 0) {
      return Error{ErrorCode::kIo, std::string(what) + ": the kernel refuses a handler of signal " +
                                       std::to_string(signal)};
    }
    g_ours[signal] = ours;
  }
  ++g_users[signal];
  return {};
}

void release_signal(int signal, SignalHandler ours) {
  std::lock_guard lock(jit::global_lock(jit::GlobalLock::kFaultHandlers));
  assert(g_users[signal] != 0 && g_ours[signal] == ours);
  if (--g_users[signal] != 0) return;
  struct sigaction now = {};
  if (::sigaction(signal, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != ours) return;
  struct sigaction none = {};
  none.sa_handler = SIG_IGN;  // drops pending ones
  ::sigaction(signal, &none, nullptr);
  ::sigaction(signal, &g_previous[signal], nullptr);
}

bool is_signal_taken(int signal) noexcept {
  return g_users[signal].load(std::memory_order_relaxed) != 0;
}

bool host_handles_signal(int signal) noexcept {
  const struct sigaction& previous = g_previous[signal];
  return (previous.sa_flags & SA_SIGINFO) != 0 || previous.sa_handler != SIG_DFL;
}

void pass_on_signal(int signal, siginfo_t* info, void* machine) {
  const struct sigaction& previous = g_previous[signal];
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, machine);
  if (previous.sa_handler == SIG_IGN) return;
  if (previous.sa_handler != SIG_DFL) return previous.sa_handler(signal);
  // No handler: apply the default action; the process ends when this handler returns.
  struct sigaction fallback = {};
  fallback.sa_handler = SIG_DFL;
  ::sigaction(signal, &fallback, nullptr);
  ::raise(signal);
}

}  // namespace uptier::tiering
