#include "jit/code/faults.h"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

#include "jit/code/code_registry.h"
#include "jit/code/global_locks.h"
#include "sampler/context.h"

namespace uptier::jit {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr greg_t kDirectionFlag = 0x400;

// Global because a signal handler has no argument of ours. `g_previous` is written before the
// handler that reads it is installed, and is not changed while the handler may run.
constinit struct sigaction g_previous[std::size(kSignals)] = {};
// Guarded by global_lock(kFaultHandlers).
constinit unsigned g_users = 0;
constinit bool g_installed = false;

// Makes the frame that the code itself would have made at its start. The word below rsp is unused:
// code without a frame keeps nothing there, and the kernel has put the signal frame further down.
void make_frame(greg_t* registers) {
  registers[REG_RSP] -= 8;
  *reinterpret_cast<greg_t*>(registers[REG_RSP]) =
      registers[REG_RBP];  // NOLINT(performance-no-int-to-ptr)
  registers[REG_RBP] = registers[REG_RSP];
}

// Handles a fault at an instruction with a trap row. `last`: no other handler would take the
// signal.
bool claim(const siginfo_t& info, ucontext_t& machine, bool last) {
  if (info.si_code <= 0) return false;  // sent by a process, not raised by an instruction
  greg_t* registers = machine.uc_mcontext.gregs;
  auto* pc =
      reinterpret_cast<const void*>(registers[REG_RIP]);  // NOLINT(performance-no-int-to-ptr)
  const Code* code = find_code(pc);
  const TrapRow* row = code == nullptr ? nullptr : code->trap_at(pc);
  if (row == nullptr) return false;
  sampler::ThreadContext& context = *sampler::current_context();
  const void* exit = trap_exit_for(pc);
  if (exit == nullptr || (context.activation == nullptr && !last)) return false;
  context.pending_trap = static_cast<uint32_t>(row->code);
  context.trap_location = row->loc;
  context.trap_detail = 0;
  context.trap_pc = reinterpret_cast<uintptr_t>(pc);
  if (context.activation == nullptr) end_orphaned(pc);  // does not return if the runtime knows
  if (context.activation == nullptr) return false;
  if (code->frame_at(pc).kind == FrameState::Kind::kNone) make_frame(registers);
  registers[REG_RIP] = reinterpret_cast<greg_t>(exit);
  registers[REG_EFL] &= ~kDirectionFlag;
  return true;
}

// Passes the signal to the handler that was installed before ours, or performs its default action.
void pass_on(int signal, siginfo_t* info, void* machine, const struct sigaction& previous) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, machine);
  bool raised_by_instruction = info->si_code > 0;
  if (previous.sa_handler == SIG_IGN && !raised_by_instruction) return;
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    return previous.sa_handler(signal);
  }
  // The default action, which is also what the kernel does with an ignored fault: the instruction
  // faults again when this handler returns, and a signal that was sent is sent again.
  struct sigaction fallback = {};
  fallback.sa_handler = SIG_DFL;
  ::sigaction(signal, &fallback, nullptr);
  if (!raised_by_instruction) ::raise(signal);
}

// Returns whether the previous action would end the process.
bool is_last(const struct sigaction& previous) {
  return (previous.sa_flags & SA_SIGINFO) == 0 &&
         (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN);
}

void on_fault(int signal, siginfo_t* info, void* machine) {
  int saved_errno = errno;
  size_t i = 0;
  while (kSignals[i] != signal) ++i;
  if (!claim(*info, *static_cast<ucontext_t*>(machine), is_last(g_previous[i]))) {
    pass_on(signal, info, machine, g_previous[i]);
  }
  errno = saved_errno;
}

// Returns the size of the frame that the kernel pushes for a signal handler; it depends on this
// processor's registers.
size_t signal_frame() {
  constexpr unsigned long kMinSigStackSize = 51;  // AT_MINSIGSTKSZ, which old headers do not have
  constexpr size_t kLeastKnown = 4096;            // for old kernels that do not tell the size
  return std::max<size_t>(::getauxval(kMinSigStackSize), kLeastKnown);
}

bool is_ours(const struct sigaction& s) {
  return (s.sa_flags & SA_SIGINFO) != 0 && s.sa_sigaction == on_fault;
}

void put_back(size_t count) {
  for (size_t i = 0; i < count; ++i) ::sigaction(kSignals[i], &g_previous[i], nullptr);
}

bool all_ours() {
  for (int signal : kSignals) {
    struct sigaction now = {};
    if (::sigaction(signal, nullptr, &now) != 0 || !is_ours(now)) return false;
  }
  return true;
}

Status install_all() {
  struct sigaction ours = {};
  ours.sa_sigaction = on_fault;
  // No SA_NODEFER: the handler raises none of its signals, and leaves by returning, which restores
  // the mask.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&ours.sa_mask);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (::sigaction(kSignals[i], nullptr, &g_previous[i]) != 0 ||
        ::sigaction(kSignals[i], &ours, nullptr) != 0) {
      put_back(i);
      return Error{ErrorCode::kIo, "faults: the kernel refuses a signal handler"};
    }
  }
  return {};
}

}  // namespace

Result<FaultHandlers> FaultHandlers::install() {
  const Held lock(global_lock(GlobalLock::kFaultHandlers));
  if (!g_installed) {
    if (Status s = install_all(); !s.ok()) return s.error();
    g_installed = true;
  }
  ++g_users;
  FaultHandlers h;
  h.installed_ = true;
  return h;
}

FaultHandlers::FaultHandlers(FaultHandlers&& other) noexcept
    : installed_(std::exchange(other.installed_, false)) {}

FaultHandlers& FaultHandlers::operator=(FaultHandlers&& other) noexcept {
  std::swap(installed_, other.installed_);
  return *this;
}

FaultHandlers::~FaultHandlers() {
  if (!installed_) return;
  const Held lock(global_lock(GlobalLock::kFaultHandlers));
  if (--g_users != 0 || !all_ours()) return;
  put_back(std::size(kSignals));
  g_installed = false;
}

Result<AltStack> AltStack::create() {
  AltStack s;
  stack_t now = {};
  bool known = ::sigaltstack(nullptr, &now) == 0;
  bool hosts = known && (now.ss_flags & SS_DISABLE) == 0;
  if (hosts && now.ss_size >= signal_frame() + kLeast) return s;
  if (hosts && (now.ss_flags & SS_ONSTACK) != 0) {
    return Error{ErrorCode::kResourceExhausted,
                 "alternate signal stack: the thread runs on one of " +
                     std::to_string(now.ss_size) + " bytes, where faults need " +
                     std::to_string(signal_frame() + kLeast) +
                     ": attach outside of signal handlers, or make it larger"};
  }
  if (known) s.before_ = now;
  constexpr size_t kGuard = 4096;
  void* mapping = ::mmap(nullptr, kGuard + kBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return Error{ErrorCode::kResourceExhausted, "alternate signal stack: no memory"};
  }
  s.mapping_ = mapping;
  stack_t ours = {};
  ours.ss_sp = static_cast<char*>(mapping) + kGuard;
  ours.ss_size = kBytes;
  if (::mprotect(mapping, kGuard, PROT_NONE) != 0 || ::sigaltstack(&ours, nullptr) != 0) {
    return Error{ErrorCode::kResourceExhausted, "alternate signal stack: the kernel refuses it"};
  }
  return s;
}

AltStack::AltStack(AltStack&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)), before_(other.before_) {}

AltStack& AltStack::operator=(AltStack&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(before_, other.before_);
  return *this;
}

AltStack::~AltStack() {
  if (mapping_ == nullptr) return;
  stack_t now = {};
  bool ours = ::sigaltstack(nullptr, &now) == 0 && now.ss_sp == static_cast<char*>(mapping_) + 4096;
  if (ours) {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    bool hosts = before_.ss_sp != nullptr && (before_.ss_flags & SS_DISABLE) == 0;
    if (!hosts || ::sigaltstack(&before_, nullptr) != 0) ::sigaltstack(&none, nullptr);
  }
  ::munmap(mapping_, 4096 + kBytes);
}

UnblockedFaults::UnblockedFaults() noexcept {
  sigset_t faults, before;
  sigemptyset(&faults);
  for (int signal : kSignals) sigaddset(&faults, signal);
  sigemptyset(&blocked_);
  if (::pthread_sigmask(SIG_UNBLOCK, &faults, &before) != 0) return;
  for (int signal : kSignals) {
    if (sigismember(&before, signal) != 1) continue;
    sigaddset(&blocked_, signal);
    any_ = true;
  }
}

UnblockedFaults::~UnblockedFaults() {
  if (any_) ::pthread_sigmask(SIG_BLOCK, &blocked_, nullptr);
}

}  // namespace uptier::jit
