// runtime.h: the tiering runtime that an embedder creates.
//
//   create -> add_method ... -> attach threads -> invoke / call entries -> report, flush
//
// A method's entry address is a stub that never changes; which code it reaches is the runtime's
// business. The address may be called like any C function of the signature from an attached thread,
// as long as the method is in service. A trap ends the innermost `invoke` of the stack that it
// happens on; where none is under way there, it ends the process, with a message that names trap
// and method. So a host calls entries below an `invoke`, or such methods only as cannot trap; what
// it calls so may lead to an `invoke`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uptier/builder.h"
#include "uptier/events.h"
#include "uptier/host.h"
#include "uptier/ids.h"
#include "uptier/opcodes.h"
#include "uptier/options.h"
#include "uptier/profile.h"
#include "uptier/profile_query.h"
#include "uptier/report.h"
#include "uptier/result.h"
#include "uptier/trace.h"

namespace uptier {

// Why and where a call ended without a result.
struct Trap {
  TrapCode code = TrapCode::kNone;
  // The method whose code trapped, or which has none (kNoCode; MethodReport::last_error says why).
  // When the host raised it, the one whose code called the host function; none when no code did.
  MethodId method;
  uint32_t location = 0;  // FunctionBuilder::set_location of the trapping instruction or call
  uint64_t detail = 0;    // what `raise` passed
};

// The outcome of `invoke`: a result, or a trap.
struct Outcome {
  uint64_t bits = 0;  // the result's bits, zero-extended; 0 for functions without result
  Trap trap;

  bool ok() const { return trap.code == TrapCode::kNone; }
};

// What one `invoke` may take. Limits of an outer `invoke` hold inside of it as well.
struct InvokeLimits {
  // Wall time in nanoseconds, after which it ends with TrapCode::kInterrupted; 0: no limit.
  uint64_t timeout_ns = 0;
  // Calls and loop iterations of the descriptions, after which it ends with TrapCode::kOutOfFuel;
  // 0: Options::fuel. Needs Options::fuel, since code that counts none cannot begin to: without it
  // nothing is called, and the trap is TrapCode::kBadCall.
  uint64_t fuel = 0;
};

class Policy;       // policy.h
class NativeStack;  // Runtime::create_stack

// Where a call of a body was made: in which method, and FunctionBuilder::set_location of the call.
struct CallSite {
  MethodId method;
  uint32_t location = 0;

  friend bool operator==(const CallSite&, const CallSite&) = default;
};

// Whether methods are sampled: as the options say; not at all, while calls and iterations go on
// being counted; or at every call and iteration, whatever that costs. Optimized code is observed as
// before, but for kOff.
enum class Sampling : uint8_t { kByOptions, kOff, kEvery };

// fork(): the child has no compile thread, and locks that others held stay so. So it leaves its
// parent's runtimes alone: it may exit (also by `return` from main), exec, and make runtimes of its
// own, on the thread that forked as well, which counts as attached to none. Nothing of a runtime of
// the parent's is flushed, written or freed there: `detach`, what a thread does at its end, and the
// destructor do nothing. Functions that return a Status or a Result answer kForked, `invoke` ends
// with TrapCode::kNoThread, all others do nothing and return what is empty. The child must not call
// entries, nor return into compiled code that it was forked below. Descriptors are shared with the
// parent as for every file. vfork, posix_spawn and clone as such do not run the handler that all
// this hangs on (pthread_atfork).
class Runtime {
 public:
  // Creates a runtime. `sink` (may be null, not owned, must outlive the runtime) receives the
  // trace; `policy` (likewise) decides in the library's place, see policy.h. Where no thread is to be
  // had for the worker, the runtime does without one, as with Options::workers = 0, and says so
  // (Options::log). Runtimes that live at the same time: 4,096 a process. Errors: kInvalidArgument
  // for options out of range, kResourceExhausted when the code region is refused.
  static Result<std::unique_ptr<Runtime>> create(const Options& options, TraceSink* sink = nullptr,
                                                 Policy* policy = nullptr);
  // Stops the worker, flushes every method one last time, and frees all code. No thread may be in
  // compiled code, and every other thread must have detached: otherwise the process ends with a
  // message (Options::log). The calling thread need not have; but one whose ThreadScope is still
  // there is told so in the log, and the scope does nothing when it ends.
  virtual ~Runtime() = default;

  // Registers a method; nothing is compiled yet. `host` is not owned and must outlive the method.
  // Cost: about a stub, which Options::code_budget pays for; an interpreter that may trap gets its
  // thunk (some code) at the first call; where a removed method's place is used
  // again it has one, and now and then all code is searched for what still means such methods.
  // Thread: any.
  // Errors: kInvalidArgument for a signature with types that values cannot have or more than
  // kMaxParams parameters, and for an own_schema that breaks a rule; kResourceExhausted when
  // Options::max_methods are in service, or were removed but cannot be forgotten yet (a compilation
  // that is under way keeps all that were removed since it began: try again), and where there is no
  // room for the stub.
  virtual Result<MethodId> add_method(Host& host, MethodInfo info) = 0;
  // Takes methods out of service: final flush, code retired. They must not run nor be called any
  // more, by an entry or by other methods; their hosts may die when it returns. Ids that add_method
  // did not return, or were removed before, are left out; of those that were retired, which must not
  // run any more either, Host::gone is called before it returns. Waits for compilations of them that
  // are under way, and for other threads that are in their Host::gone. Thread: any, but not from
  // `build`, where it takes nothing out and says so in the log.
  //
  // From then on an id is nobody's, until 4,095 methods have had its index: functions that take
  // one refuse it, and a call in a body that is compiled later ends with TrapCode::kNoCode. The
  // entry's address goes to a new method sooner or later. Not before no code is left that has
  // inlined the old one or guesses its address, and no compilation that has seen it; code of others
  // that means it is made anew for that. What callers counted goes to `other`. A host that calls the
  // address too late gets kNoCode or, once it has been given away, the new method: who keeps
  // addresses must forget them before it removes what they are of.
  // The report and the profile know removed methods until they are so many that
  // Options::removed_kept, or max_methods, makes the oldest go (LossReport::methods_forgotten).
  virtual void remove_methods(std::span<const MethodId> methods) = 0;
  // The same of methods that may be running, on any thread: nothing calls them from here on, while
  // frames of their code, and of code that has their bodies in it, go on to their end. Such a frame
  // may still leave its code: for host_resume, or for baseline code, for which `build` is asked. So
  // their hosts live until Host::gone, which says that no such frame is left and none will be.
  //
  // All else that remove_methods says of ids, calls and entries holds, of calls in their own bodies
  // as well: one by the method's id, or of its old entry, ends with TrapCode::kNoCode, unless it runs
  // in optimized code that was made before. So what calls itself does so by an entry that it is told
  // (PlannedHost). Frames of the host's interpreter are the host's own: they go on, and osr_enter
  // refuses the id. What frames still count their thread hands over when it next flushes or
  // detaches. Thread: any, host_resume included, but not from `build`. Cost: as for remove_methods.
  virtual void retire_methods(std::span<const MethodId> methods) = 0;

  // Returns the address that callers hold. Constant for the method's life; thread: any. Null for an
  // id that add_method did not return, or that was removed.
  //
  // A trap in a call of it ends all frames up to the innermost `invoke` as longjmp does, C++ frames
  // of the host's in between included: no destructor of theirs runs. A frame that has to clean up
  // calls by `invoke`, looks at the outcome, and raises the trap again. With no `invoke` under way
  // on the stack, a trap ends the process (abort, or the host's own handler of the signal).
  virtual const void* entry_address(MethodId m) const = 0;
  // Returns it if the method has this signature; else null, and both signatures are logged
  // (Options::log).
  virtual const void* entry_address(MethodId m, const Signature& expected) const = 0;
  // Returns it as a C function pointer, e.g. `runtime.entry<int64_t(Vm*, int64_t)>(m)`. Null where
  // the method has another signature than F.
  template <typename F>
  F* entry(MethodId m) const {
    F* const none = nullptr;
    return reinterpret_cast<F*>(const_cast<void*>(entry_address(m, signature_of(none))));
  }

  // Calls a method with the bits of its arguments (zero-extended, one word each) and catches traps.
  // May be nested inside host functions. Attaches the thread for the duration if it is not, which
  // maps memory and takes a lock: threads that call again had better attach.
  //
  // Floating point: guest code, and host functions that it calls, run with what a process begins
  // with (rounding to nearest, denormals kept, no exception raised), whatever the caller has set.
  // What the caller had is back when this returns, flags included, also after a trap. A host
  // function that changes rounding or masks puts them back before it returns, as the ABI asks. An
  // entry that is called without an `invoke` runs with what its caller has set.
  // From `build` it may be called: of a method that is being described, by this thread or by one
  // that waits for it, it is TrapCode::kNoCode.
  //
  // TrapCode::kNoCode: there is none, and error_of() says why. Another number of arguments than the
  // signature has, and an id that add_method did not return, are TrapCode::kBadCall, and nothing is
  // called; nor is anything where the thread could not be attached, which is TrapCode::kNoThread
  // (attach() says why).
  virtual Outcome invoke(MethodId m, std::span<const uint64_t> args) = 0;
  // The same with limits: see InvokeLimits. Nothing is called where the kernel refuses the timer of a
  // timeout, which is TrapCode::kNoThread.
  virtual Outcome invoke(MethodId m, std::span<const uint64_t> args,
                         const InvokeLimits& limits) = 0;

  // Ends the innermost `invoke` of a thread, or of every attached thread, with
  // TrapCode::kInterrupted. Nothing happens to a thread that is in no `invoke`, nor to one that has
  // ended by the time that the thread hears of it. Compiled code ends within a few milliseconds,
  // wherever it is; a host function ends when it returns, and one that waits asks
  // uptier::interrupted() (interrupted.h). What the guest was about to store may be missing.
  // The thread that runs the guest receives Options::interrupt_signal, again and again until the
  // invoke has ended; `invoke` unblocks it. System calls of host functions fail with EINTR meanwhile.
  //
  //   thread   thread_number() of the thread to stop; 0: all
  //
  // Thread: any, also one that is not attached; not from a signal handler. Errors: kNotFound where
  // no such thread is attached; kResourceExhausted where the kernel refuses a timer, or a thread has
  // not heard of the last few interrupts. Cost: a system call for each thread; nothing while it is
  // unused.
  virtual Status interrupt(uint32_t thread = 0) = 0;
  // Returns the number of the calling thread's attachment, from 1; 0 when it is not attached.
  virtual uint32_t thread_number() const noexcept = 0;
  // Returns the fuel that the calling thread's innermost `invoke` has left; UINT64_MAX where
  // nothing counts it (Options::fuel is 0, or no `invoke` is under way).
  virtual uint64_t fuel_left() const noexcept = 0;

  // For loops of a host's interpreter. Returns the calling thread's countdown of the method's
  // loops: the interpreter decrements it at every back edge, and when it is 0 or below calls
  // osr_enter. It writes nothing else there, for iterations are counted by it. The word is the
  // thread's, and goes when the thread detaches: also when the `invoke` returns that attached it. On
  // a thread that is not attached it is a word that all such threads share and nobody counts by.
  virtual int32_t* loop_countdown(MethodId m) noexcept = 0;
  // Returns the same word in two parts, for a host that keeps one of them with the method:
  //
  //   (int32_t*)((char*)thread_base() + loop_countdown_offset(m)) == loop_countdown(m)
  //
  // thread_base() is the calling thread's, and good while the thread stays attached: a call of the
  // interpreter asks once, when it begins. The offset holds for all threads, for as long as the
  // method is in service; for an id that is nobody's it is that of a word that nobody counts by.
  // Thread: any. Cost: a call and a load.
  static void* thread_base() noexcept;
  virtual ptrdiff_t loop_countdown_offset(MethodId m) const noexcept = 0;
  // Counts the iterations, and if there is code that can be entered at the header of `loop` from
  // the interpreter's frame, runs the rest of the call there and returns its outcome; else nothing,
  // and the interpreter goes on. `args` are the call's arguments, of which those are read that the
  // description uses behind the header or has in a slot; `frame` are the host's slots: word k is the
  // value of slot k of FunctionBuilder::loop_header, whose bits fill the word from below.
  // A slot that was described as a constant or as an argument, or as the same value as another slot,
  // must still be that: code takes it for granted. A frame in which it is not is not entered, also
  // where nothing uses the slot. An interpreter may have come by ways that are not described;
  // FunctionBuilder::make_own makes this safe.
  //
  // The code may leave for MethodInfo::host_resume, whose interpreter may come here again, and so
  // on, each time with C frames of its own on the stack. So there is nothing to enter, and the
  // interpreter goes on, when
  //   - Options::tier is not auto;
  //   - kMostExitsToHost frames of compiled code or more wait on this thread for a host_resume;
  //   - the stack has no room for the code's frame above its limit (stack_left());
  //   - a guard of the method has failed so often that it is banned (Options::exit_limit). That is
  //     decided in the exit that reaches the limit, not later.
  //
  // Errors: a loop that uses a value which is neither an argument, a constant nor in a slot is not
  // entered, nor is one that `build` does not describe, nor a frame that is not as described (said
  // once for each version of the code); MethodReport::last_error says so, with loop and slot. Nothing
  // is entered with another number of arguments than the signature has, or without a frame.
  static constexpr uint32_t kMostExitsToHost = 32;
  virtual std::optional<Outcome> osr_enter(MethodId m, LoopId loop, std::span<const uint64_t> args,
                                           const uint64_t* frame) = 0;

  // Returns the calling thread's counters of a method that the host compiles by itself, in the
  // words of MethodInfo::own_schema. Never null inside an instrumented copy. Thread: attached
  // (which is not checked).
  virtual uint64_t* counters(MethodId m) noexcept = 0;

  // Changes an option while threads run, which go on. docs/embedding.md, "Options", lists which, when
  // each is in force, and why a runtime has the others for life: rates, bursts and flushes, the
  // inputs of the policy, of exits and of values, and how much is kept.
  // What is decided from here on goes by it, and so does what is sampled: a thread notices when its
  // calls of a method have grown by a quarter, or after 2^20 of them or 65,536 iterations, at the
  // latest. Estimates stand for what ran before at the rate that was in force then. The change is
  // logged (an action "set" of no method), and decisions before and behind it replay with their
  // own options. Thread: any, but not from `build`. Errors: those of Options::set; kUnsupported for
  // what a runtime has for life, and for `interval` and `burst` where every call is sampled
  // (interval=1, tier=instrumented), by turns (gap=exact), or none; and for what this runtime has
  // no use for (docs/embedding.md).
  virtual Status set(std::string_view name, std::string_view value) = 0;
  // Turns sampling off, up to every call, or back to what the options say: noticed like `interval`,
  // with the same errors. With fixed rates, what runs while it is off is in no estimate; rates that
  // adapt give it to the samples that follow.
  virtual Status observe(Sampling how) = 0;

  // Raises a trap: the calling code ends with it as soon as the function that raised it returns,
  // and the innermost `invoke` returns it, with the method and the location of the call. Legal below
  // an `invoke` in a host function that compiled code called with kCallMayTrap, in the host_entry of
  // a method with host_may_trap, and in host_resume. Raised elsewhere below an `invoke`, it ends
  // whichever code next looks for a trap before the outermost `invoke` returns. What nobody took by
  // then, what was raised again before it was taken, and what is raised with no `invoke` further up
  // is dropped and counted (LossReport::traps_lost; not on a thread that is not attached).
  static void raise(TrapCode code, uint64_t detail = 0) noexcept;

  // Returns the call that returns to an address, in a body that the library compiled: what a host
  // function learns from __builtin_return_address(0). Of a body that was inlined it is that body's
  // call, not its caller's. Nothing for an address that no such call returns to: the stub of a
  // method that the host interprets, the host's own code, `invoke`. The method is one of the runtime
  // whose code it is. Thread: any that has the address on its stack. Cost: logarithmic in the
  // body's calls; no lock.
  static std::optional<CallSite> call_site(const void* return_address) noexcept;
  // Writes where the calling thread's bodies stand, the innermost first, and returns how many it
  // wrote: as many as there are, or as fit. From a host function that compiled code called, the
  // first is the call of that function. Bodies that were inlined have entries of their own. What is
  // not code of this runtime is passed by and has none: host functions between an `invoke`, or a
  // call of an entry, and the compiled code that led to it; calls that the host interprets, be it in
  // host_entry or in host_resume; other runtimes.
  //
  // The host's frames are passed by the unwind tables that compilers write (.eh_frame) whether or not
  // they keep frame pointers. Where a frame has none, as in code that the host makes by itself, the
  // walk goes on from the next `invoke`, and what lies between is missing.
  // Thread: any, for its own stack; not from a signal handler, nor from `build`, where the innermost
  // entry may be missing. Cost: a look-up of code and of a row for each frame of compiled code, and
  // for each of the host's, up to the outermost `invoke`, a step of the unwinder, as an exception
  // takes. Allocates nothing and takes no lock of the library's (the loader may take one of its own
  // before glibc 2.35).
  virtual size_t walk(std::span<CallSite> sites) noexcept = 0;

  // Returns why the last compilation of a method failed; empty if none did, and for an id that
  // add_method did not return. Thread: any.
  virtual std::string error_of(MethodId m) const = 0;

  // Returns the bytes of stack that the calling thread's guest code may still take before calls
  // trap stack_exhausted (Options::max_stack, stack_reserve); 0 when nothing is left of them, and
  // host functions run on the reserve. An interpreter that calls itself without compiled code in
  // between asks here. UINT64_MAX on a thread that is not attached.
  static uint64_t stack_left() noexcept;

  // Attaches the calling thread (counters, countdowns, stack limit) until `detach`. Nests. With
  // Options::profile and a worker, methods that are registered by then may be described from here
  // on, if the profile knows them: they are compiled ahead of their first calls. A thread that ends
  // attached is detached when its thread_local objects are destroyed; the runtime must still be
  // there then, as for every thread that is attached.
  //
  // While the thread is attached, SIGSEGV, SIGBUS, SIGFPE and SIGILL are not blocked on it, and its
  // alternate signal stack has room for their handler: if it blocks one, or its own stack is too
  // small, that is changed here and changed back by the last detach. What it changes meanwhile is
  // the host's responsibility: a trap that finds its signal blocked ends the process.
  // Errors: kResourceExhausted when memory for the thread's context is refused, or its stack has no
  // more left than stack_reserve, so that every call would trap; kInvalidArgument on a stack that is
  // not the thread's own (attach before the first switch, see create_stack).
  virtual Status attach() = 0;
  // Flushes what the thread has counted and detaches it, with the last of as many calls as it
  // attached; nothing when it is not attached. A host function must not detach more often than it
  // attached: compiled frames below it count on the thread's context. Its stacks (create_stack) are
  // destroyed with the last: what is suspended on them must not go on.
  virtual void detach() = 0;
  // Says that the calling thread holds no compiled frame right now, so that retired code may be
  // freed. When the outermost `invoke` returns it looks by itself: what nothing on the stack refers
  // to is freed; code that the host made, whose extent is not known, only after this. On a thread
  // with suspended stacks (create_stack) it looks as well.
  virtual void quiescent() noexcept = 0;
  // Says that the calling thread is about to wait (for input, a lock, work), with compiled frames
  // on its stack or without: until end_blocked() it runs no compiled code, and what its stack does
  // not refer to can be freed without it. Does nothing on a thread that is not attached; does not
  // nest.
  virtual void begin_blocked() noexcept = 0;
  virtual void end_blocked() noexcept = 0;

  // Stacks of the host's own, for coroutines, fibers, green threads. Compiled code checks the limit
  // of the stack that it runs on, and each stack has `invoke`s and a raised trap of its own; so the
  // runtime must know which one a thread is on. A stack is named once, and each swap is announced:
  //
  //   create_stack(low, bytes)     [low, low + bytes) is a stack, with nothing on it
  //   switch_stack(to)             right before the host swaps to it; null: the thread's own stack
  //   destroy_stack(stack)         it is no stack any more; what is suspended on it is dropped
  //
  // Between switch_stack and the swap the host calls nothing of the library. Compiled code may be
  // suspended anywhere in a host function that it has called, on any number of stacks, and go on in
  // any order; code that such a stack refers to is kept. `invoke` and the return from it are on the
  // same stack, and a trap ends the innermost `invoke` of the stack that it happens on: the function
  // that a fiber begins with therefore calls by `invoke`. Not from `build`.
  //
  // A stack belongs to the thread that has created it, until it is destroyed: another thread is
  // refused. (Suspended frames count in that thread's counters.) A thread pool that moves fibers
  // moves them before they begin, or when they have ended.
  //
  // A fiber that has ended may be begun anew on its stack; of one that is suspended the stack is
  // destroyed and created again first. `low` is not owned: the memory stays mapped until
  // destroy_stack, or until the thread detaches; pages that were never touched are not looked at.
  // create_stack allocates a small record; switch_stack allocates nothing and takes no lock. Loop
  // executions that are being timed (Options::loops) are not recorded when they span a switch.
  //
  // Errors of create_stack: kInvalidArgument where the thread is not attached or the range is none;
  // kResourceExhausted where stack_reserve would leave compiled code nothing of it. max_stack holds
  // for it, too.
  virtual Result<NativeStack*> create_stack(void* low, size_t bytes) = 0;
  // Errors: kInvalidArgument where the thread is not attached, says that it is blocked, is on another
  // stack than it has said last, or where `to` is another thread's. The switch has not happened then,
  // and the host must not swap.
  virtual Status switch_stack(NativeStack* to) = 0;
  // Errors: kInvalidArgument for the stack that the thread is on, and for another thread's. Null is
  // accepted. Frames that were suspended there are gone as by a trap: no destructor runs.
  virtual Status destroy_stack(NativeStack* stack) = 0;

  // Flushes all methods of the calling thread, whatever their counts, and waits until the worker
  // has handled what was queued, compilations included. For tests, ends of phases, and reports. Not
  // from a host function: a compilation that it waits for may wait for the caller. Does nothing, and
  // says so in the log, when `build` calls it.
  virtual void flush() = 0;

  // Returns what the runtime did so far. Thread: any; consistent per method, not across methods.
  // Cost: copies what is known of every method and decision under the runtime's lock, so that
  // flushes wait meanwhile: for ends of phases, not for loops.
  virtual Report report() const = 0;
  // Returns Report::saved alone. Thread: any. Cost: two strings.
  virtual SavedReport saved_report() const = 0;
  // Returns the merged profile of everything flushed so far. A method of several blocks that no
  // copy was made of yet which counts, because it is called rarely, is not in it. Thread and cost:
  // as for report.
  virtual Profile profile() const = 0;

  // Writes Options::profile: what this process has seen, merged with what the file holds by now
  // (its counts times profile_decay, but for methods that were taken on trust from it and have not
  // drifted). Flushes the calling thread first. May be called again, so that what kills a process
  // which runs for long takes little with it: a run is counted once, and others fade once for it.
  // The destructor writes only if this was never called, and logs what it cannot write.
  // Does nothing without the option. Thread: any, but not from a host function nor from `build` (it
  // flushes). Cost: reads and writes the whole file, with the runtime's lock held, but a run that has
  // learnt nothing is only counted behind the file's end the first time (docs/profiles.md). Does not
  // wait for what is still to be compiled. Errors: kIo, and kCorruptInput for a file that is no
  // profile, which is left alone.
  virtual Status save_profile() = 0;

  // Returns what the profile of earlier processes (Options::profile) has seen at a site, for a host
  // that compiles by itself or chooses what to describe: profile_query.h has the keys. Nothing
  // without such a profile. Thread: any, from `build` as well. Cost: linear in the profile's
  // methods, with the runtime's lock held; reads the whole file the first time.
  virtual std::optional<ProfileAnswer> query(std::string_view stage, std::string_view scope_hash,
                                             std::string_view key) {
    (void)stage, (void)scope_hash, (void)key;
    return std::nullopt;
  }

  // Returns the loops of all methods that were compiled and are timed, most cycles first; empty
  // without Options::loops and loop_functions. Counts are those that were flushed. Thread: any.
  virtual std::vector<LoopReport> loops() const = 0;
  // Measures loops by a counter of the host's from now on, on threads that attach later. Without cycles
  // nothing is known of a loop's share of a thread's time. Errors: kInvalidArgument for one function
  // of the two, and after a thread has attached. Thread: any.
  virtual Status set_loop_meter(const LoopMeter& meter) {
    (void)meter;
    return Error{ErrorCode::kUnsupported, "set_loop_meter: this runtime measures cycles only"};
  }
  // Keeps the first `count` executions of loops that each thread times, which attaches later, one by
  // one, at most 2^20 (40 bytes each). Thread: any.
  virtual void keep_loop_executions(uint32_t count) { (void)count; }
  // Returns them, in order of their ends, those of threads that have detached first. Thread: any.
  virtual std::vector<LoopExecution> loop_executions() const { return {}; }

  // Has `who` receive what this runtime does from now on, record by record: events.h has the kinds,
  // their order, the threads that call it, and what it costs. Returns the number of the last record
  // that it does not receive; report() tells of what was before. `who` is not owned, and lives until
  // it is unsubscribed or the runtime has been destroyed.
  //
  //   kinds   the kinds that it wants (kinds_of); kLost comes to every subscriber whose records it
  //           counts
  //
  // Thread: any, subscribers included. Errors: kInvalidArgument when it is subscribed already;
  // kResourceExhausted when memory is refused.
  virtual Result<uint64_t> subscribe(EventSubscriber& who, EventKinds kinds = kAllEvents) {
    (void)who, (void)kinds;
    return Error{ErrorCode::kUnsupported, "subscribe: this runtime tells of no events"};
  }
  // Ends that. When it returns, `who` is not being called on another thread and will not be called
  // again; what happened before has been delivered. So the caller must not hold a lock that a
  // subscriber waits for. A subscriber may unsubscribe itself, or others, while it is being called:
  // then what has not been delivered is dropped.
  // Thread: any. Errors: kNotFound when it is not subscribed.
  virtual Status unsubscribe(EventSubscriber& who) {
    (void)who;
    return Error{ErrorCode::kNotFound, "unsubscribe: this runtime tells of no events"};
  }

  // Takes the records of log probes that all threads have made so far, those that have detached
  // first: of each thread in order, oldest first. A thread's ring keeps the latest log_records, and
  // as many are kept of all threads that have detached; what is lost for that is counted in
  // LossReport::log_records and, while its thread is attached, at its site. Thread: any.
  virtual std::vector<LogRecord> read_log() = 0;

  // Returns the text form of a method's IR. Describes the method afresh: `build` runs on the
  // calling thread. Waits for a compilation of the method that is under way. Thread: any. Cost: that of describing and printing. Errors: what `build` returns, and
  // kInvalidArgument for an id that add_method did not return, and where it would wait for its
  // caller (a `build` of the method).
  virtual Result<std::string> ir(MethodId m) = 0;
};

// Attaches the thread for a scope, which ends before the runtime does.
class ThreadScope {
 public:
  explicit ThreadScope(Runtime& r) : runtime_(r), status_(r.attach()) { begin(); }
  ~ThreadScope() {
    if (status_.ok() && ends_inside()) runtime_.detach();
  }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;
  const Status& status() const { return status_; }

 private:
  void begin() noexcept;
  // Whether the runtime is still there.
  bool ends_inside() const noexcept;

  Runtime& runtime_;
  Status status_;
  bool watched_ = false;  // the runtime knows of the scope
};

// Says that the thread waits, for a scope, which ends before the runtime does.
class BlockedScope {
 public:
  explicit BlockedScope(Runtime& r) : runtime_(r) {
    runtime_.begin_blocked();
    begin();
  }
  ~BlockedScope() {
    if (ends_inside()) runtime_.end_blocked();
  }
  BlockedScope(const BlockedScope&) = delete;
  BlockedScope& operator=(const BlockedScope&) = delete;

 private:
  void begin() noexcept;
  bool ends_inside() const noexcept;

  Runtime& runtime_;
  bool watched_ = false;
};

}  // namespace uptier
