// shared_signal: process signals that one of our handlers shares with one of the host.
//
// The law: our handler is installed while there are users (take_signal without release_signal).
// Signals that our handler does not recognize go to the handler that was installed before. After
// the last release, that one is restored, unless the host has installed another since, which then
// stays.
//
//   Thread: take_signal and release_signal: any. The rest: any, also in signal handlers.
#pragma once

#include <signal.h>

#include "uptier/result.h"

namespace uptier::tiering {

using SignalHandler = void (*)(int signal, siginfo_t* info, void* machine);

// Installs `ours`, or counts one more user. `flags` are added to SA_SIGINFO and SA_ONSTACK. A
// signal can have only one handler of ours. Errors: kInvalidArgument if it has another, kIo; the
// messages begin with `what`.
Status take_signal(int signal, SignalHandler ours, int flags, const char* what);
// Removes a user. After the last one, pending signals are dropped.
void release_signal(int signal, SignalHandler ours);
bool is_signal_taken(int signal) noexcept;
// Passes the signal to the host's handling of it; called in our handler.
void pass_on_signal(int signal, siginfo_t* info, void* machine);
// Says whether the host handles the signal itself, or ignores it.
bool host_handles_signal(int signal) noexcept;

}  // namespace uptier::tiering
