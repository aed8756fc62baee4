// shared_signal: signals of the process that a handler of ours and one of the host's share.
//
// The law: our handler is there while somebody has taken the signal and not released it. A signal that our
// handler does not know goes to the handler that was there before. After the last release that one is back,
// unless the host has installed another since, which then stays.
//
//   Thread: take_signal and release_signal any; the rest any, in signal handlers too.
#pragma once

#include <signal.h>

#include "uptier/result.h"

namespace uptier::tiering {

using SignalHandler = void (*)(int signal, siginfo_t* info, void* machine);

// Installs `ours`, or counts that it is wanted once more. `flags` beside SA_SIGINFO and SA_ONSTACK. One signal
// has one handler of ours. Errors: kInvalidArgument when it has another, kIo; they begin with `what`.
Status take_signal(int signal, SignalHandler ours, int flags, const char* what);
// Drops signals that are on their way, if nobody has the signal any more.
void release_signal(int signal, SignalHandler ours);
bool is_signal_taken(int signal) noexcept;
// Does what the host wants of the signal; called in our handler.
void pass_on_signal(int signal, siginfo_t* info, void* machine);
// Returns whether the host handles the signal itself, or ignores it.
bool host_handles_signal(int signal) noexcept;

}  // namespace uptier::tiering
