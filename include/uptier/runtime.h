// runtime.h: the tiering runtime that an embedder creates.
//
//   create -> add_method ... -> attach threads -> invoke / call entries -> report, flush
//
// The entry address of a method is a stub that never changes; the runtime decides which code it
// reaches. Any thread may call the address like a C function of the method's signature, as long as the method is in
// service. On a thread that is not attached, such a call is not counted and makes nothing faster
// (LossReport::calls_unattached). A trap ends the innermost `invoke` of its stack. Without an `invoke` on that
// stack, the log names the trap and the method, and the process ends by abort(); but if the trap is a fault
// (SIGSEGV, SIGBUS, SIGFPE, SIGILL) and the host has a handler of its own for the signal, that handler is called
// instead. So a host calls entries below an `invoke`, or only entries of methods that cannot trap; these may in
// turn lead to an `invoke`.
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
#include "uptier/code_image.h"
#include "uptier/events.h"
#include "uptier/host.h"
#include "uptier/host_data.h"
#include "uptier/ids.h"
#include "uptier/image.h"
#include "uptier/log_format.h"
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
  // The method whose code trapped, or which has no code (kNoCode; MethodReport::last_error says
  // why). If the host raised the trap, the method whose code called the host function; none if no
  // compiled code did.
  MethodId method;
  uint32_t location = 0;  // FunctionBuilder::set_location of the trapping instruction or call
  uint64_t detail = 0;    // the argument of `raise`
};

// The outcome of `invoke`: a result, or a trap.
struct Outcome {
  uint64_t bits = 0;  // the result's bits, zero-extended; 0 for functions without result
  Trap trap;

  bool ok() const { return trap.code == TrapCode::kNone; }
};

// Limits of one `invoke`. The limits of an outer `invoke` also hold inside of it.
struct InvokeLimits {
  // Wall time in nanoseconds; after it the call ends with TrapCode::kInterrupted. 0: no limit.
  uint64_t timeout_ns = 0;
  // Calls and loop iterations in described bodies; after them the call ends with TrapCode::kOutOfFuel. 0:
  // Options::fuel. Another value requires Options::fuel > 0, because only then does code count. Otherwise nothing
  // is called, and the trap is TrapCode::kBadCall.
  uint64_t fuel = 0;
};

class Policy;       // policy.h
class NativeStack;  // Runtime::create_stack

// A call in a method's body: the method, and FunctionBuilder::set_location of the call.
struct CallSite {
  MethodId method;
  uint32_t location = 0;

  friend bool operator==(const CallSite&, const CallSite&) = default;
};

// One body at an address: the block that is executed there, or, for bodies around an inlined one, the call that
// the inlined body replaces. Sites are those of profiles; 0: not known. `location` is FunctionBuilder::set_location of
// the call, or, with Options::line_rows, gdb or jit_dump, of any instruction; 0: not known.
struct PlaceFrame {
  MethodId method;
  SiteId site = 0;
  uint32_t location = 0;

  friend bool operator==(const PlaceFrame&, const PlaceFrame&) = default;
};

// The place in the program of an address of compiled code.
struct CodePlace {
  bool stub = false;     // the stub of the method; then only `frames` has a value
  uint64_t version = 0;  // serial number, as in events
  Tier tier = Tier::kBaseline;
  Copy copy = Copy::kPlain;
  LoopId loop = {};                // the loop where the version is entered; none: at its start
  std::vector<PlaceFrame> frames;  // innermost first; the last is the version's own method

  friend bool operator==(const CodePlace&, const CodePlace&) = default;
};

// The calls and iterations to sample. kByOptions: as the options say. kOff: none, in any code; stubs and loop
// headers still count calls and iterations. kEvery: all in baseline code, whatever that costs; optimized code is
// sampled as the options say.
enum class Sampling : uint8_t { kByOptions, kOff, kEvery };

// fork(): the child process has no compile thread, and locks that other threads held stay locked.
// So the child does not touch its parent's runtimes. It may exit (also by `return` from main),
// exec, and create its own runtimes, also on the thread that forked, which counts as not attached.
// Nothing of the parent's runtimes is flushed, written or freed in the child: `detach`, the end of
// a thread, and the destructor do nothing. Functions that return a Status or a Result return
// kForked, `invoke` ends with TrapCode::kNoThread, and all others do nothing and return an empty
// value. The child must not call entries, and must not return into compiled code below which it was
// forked. File descriptors are shared with the parent, as for every file. All this relies on a
// pthread_atfork handler, which vfork, posix_spawn and clone do not run.
//
// Data of the host in the profiles of a runtime: host_data.h. Code made ahead of time: image.h.
class Runtime : public HostData, public Images {
 public:
  // Creates a runtime. `sink` (may be null, not owned, must outlive the runtime) receives the
  // trace. `policy` (likewise) replaces the library's policy, see policy.h. If the system refuses a
  // thread for the worker, the runtime works without one, as with Options::workers = 0, and logs it
  // (Options::log). Each runtime takes about half a gigabyte of address space. Errors: kInvalidArgument for options
  // out of range; kResourceExhausted if the code region is refused, or if the process has 4,096 runtimes already.
  static Result<std::unique_ptr<Runtime>> create(const Options& options, TraceSink* sink = nullptr,
                                                 Policy* policy = nullptr);
  // Stops the worker, flushes every method one last time, and frees all code. No thread may be in
  // compiled code, and every other thread must have detached; otherwise the process ends with a
  // message (Options::log). The calling thread may still be attached. If a ThreadScope of it still
  // exists, the log says so, and that scope does nothing when it ends.
  ~Runtime() override = default;

  // Registers a method; nothing is compiled yet. `host` is not owned and must outlive the method.
  //
  // Cost: a stub of 32 bytes, which counts against Options::code_budget. An interpreter that may trap also gets a
  // thunk (some code): at its first call, or here if the index of a removed method is used again. From time to time
  // all code is searched for uses of removed methods. Thread: any. Errors: kInvalidArgument for a signature with
  // types that values cannot have or with more than kMaxParams parameters, and for an own_schema that
  // Schema::check() refuses; kResourceExhausted if Options::max_methods methods are in service, or were removed but
  // cannot be forgotten yet (a compilation that is under way keeps all methods that were removed since it began:
  // try again), or if there is no room for the stub.
  virtual Result<MethodId> add_method(Host& host, MethodInfo info) = 0;
  // Takes methods out of service: flushes them and retires their code. They must not run and must
  // not be called any more, by an entry or by other methods. Their hosts may be destroyed after
  // this returns. Ids that add_method did not return, or that were removed before, are ignored. If
  // the list has retired methods, which must not run any more either, Host::gone is called for them
  // before this returns. Waits for compilations of these methods that are under way, and for other
  // threads that are in their Host::gone. Thread: any, but not from `build`, where it does nothing
  // and says so in the log.
  //
  // From then on the id is invalid: functions that take an id refuse it, and a call of it in a body that is
  // compiled later ends with TrapCode::kNoCode. After 4,095 further methods have had its index, a new method gets
  // the same id. A new method may get the entry's address earlier: once all code that inlined the old method, or
  // that compares a call target with its address, is freed, and all compilations that used it have ended; other
  // code that refers to the old method is compiled again for this purpose. So forget ids and addresses before you
  // remove methods. Counts of removed methods in the call-target tables of callers move to `other`
  // (SlotKind::kCallTarget). The report and the profile still list removed methods; the oldest are dropped when
  // there are too many for Options::removed_kept or max_methods (LossReport::methods_forgotten).
  virtual void remove_methods(std::span<const MethodId> methods) = 0;
  // Takes methods out of service that may still be running, on any thread. Nothing calls them from
  // here on; frames of their code, and of code that has their bodies inlined, run to their end. Such a frame may
  // still deoptimize, to host_resume or to baseline code, for which the runtime may call `build`. So their hosts
  // must live until Host::gone, which says that there is no such frame and will be none.
  //
  // Everything else is as for remove_methods: ids, calls and entries. This includes calls in the
  // methods' own bodies: a call by the method's id or old entry ends with TrapCode::kNoCode, unless
  // it is in optimized code that was made before. So let a method call itself through an entry that it is given
  // (PlannedHost). Frames of the host's interpreter are not affected: they go on, and osr_enter refuses the id.
  // Threads hand over the counts of such frames at their next flush or detach. Thread: any, also from host_resume,
  // but not from `build`.
  virtual void retire_methods(std::span<const MethodId> methods) = 0;

  // Returns the address for callers. It is constant for the method's life. Null for an id that
  // add_method did not return, or that was removed. Thread: any.
  //
  // A trap in such a call ends all frames up to the innermost `invoke`, as longjmp does, including
  // C++ frames of the host in between: their destructors do not run. A frame that must clean up
  // calls through `invoke`, looks at the outcome, and raises the trap again. Without an `invoke` on the stack, a
  // trap ends the process (see the top of this file).
  virtual const void* entry_address(MethodId m) const = 0;
  // Returns the address if the method has this signature; else null, and logs both signatures
  // (Options::log).
  virtual const void* entry_address(MethodId m, const Signature& expected) const = 0;
  // Returns the address as a C function pointer, e.g. `runtime.entry<int64_t(Vm*, int64_t)>(m)`.
  // Null if the method's signature is not F.
  template <typename F>
  F* entry(MethodId m) const {
    F* const none = nullptr;
    return reinterpret_cast<F*>(const_cast<void*>(entry_address(m, signature_of(none))));
  }

  // Calls a method with the bits of its arguments (zero-extended, one word each) and catches traps.
  // May be nested inside host functions. Attaches the thread for the duration of the call if it is
  // not attached; this maps memory and takes a lock, so threads that call often should attach
  // first.
  //
  // Floating point: guest code, and host functions that it calls, run with the default environment
  // of a process (rounding to nearest, denormals kept, no exceptions raised), whatever the caller
  // has set. The caller's environment and flags are restored when this returns, also after a trap.
  // A host function that changes rounding or masks must restore them before it returns, as the ABI
  // requires. An entry that is called without an `invoke` runs with the caller's environment.
  //
  // Errors: TrapCode::kNoCode if the method has no code; error_of() says why. It may be called from
  // `build`, but a method that is being described, by this thread or by one that waits for it, is
  // kNoCode too. TrapCode::kBadCall for a wrong number of arguments, for an id that add_method did not return or
  // that was removed, for limits of fuel without Options::fuel, and in an EventSubscriber. TrapCode::kNoThread if
  // the thread could not be attached (attach() says why). In the last two cases nothing is called.
  virtual Outcome invoke(MethodId m, std::span<const uint64_t> args) = 0;
  // The same with limits: see InvokeLimits. If the kernel refuses the timer for a timeout, nothing
  // is called, and the trap is TrapCode::kNoThread.
  virtual Outcome invoke(MethodId m, std::span<const uint64_t> args,
                         const InvokeLimits& limits) = 0;

  // Ends the innermost `invoke` of a thread, or of every attached thread, with
  // TrapCode::kInterrupted. A thread that is in no `invoke`, or whose `invoke` has ended before the
  // thread notices, is not affected. Compiled code ends within a few milliseconds, wherever it is.
  // A host function ends when it returns; if it waits, it asks uptier::interrupted()
  // (interrupted.h). The guest's memory may then be in a state that the program never has: a fill or copy may be
  // half done, and optimized code leaves out stores that a later store overwrites. Until the invoke has ended, the
  // guest's thread receives Options::interrupt_signal every 50 us to 5 ms; `invoke` unblocks this signal.
  // System calls of host functions fail with EINTR meanwhile.
  //
  //   thread   thread_number() of the thread to stop; 0: all
  //
  // Thread: any, also one that is not attached; not from a signal handler. Errors: kNotFound if no
  // such thread is attached; kResourceExhausted if the kernel refuses a timer, or if a thread has
  // not yet noticed the last few interrupts. Cost: a system call per thread; nothing while it is
  // unused.
  virtual Status interrupt(uint32_t thread = 0) = 0;
  // Returns the number of the calling thread's attachment, from 1; 0 if it is not attached.
  virtual uint32_t thread_number() const noexcept = 0;
  // Returns the fuel left to the calling thread's innermost `invoke`; UINT64_MAX if fuel is not
  // counted (Options::fuel is 0, or no `invoke` is under way).
  virtual uint64_t fuel_left() const noexcept = 0;

  // For loops of a host's interpreter. Returns the calling thread's countdown for the method's
  // loops. The interpreter decrements it at every back edge, and calls osr_enter when it is 0 or
  // below. It must not write it otherwise, because iterations are counted by it. The word belongs
  // to the thread and is valid until the thread detaches; if an `invoke` attached the thread, until
  // that `invoke` returns. On a thread that is not attached, this returns a word that all such
  // threads share and that nobody reads.
  virtual int32_t* loop_countdown(MethodId m) noexcept = 0;
  // Returns the same word in two parts, for a host that keeps one of them with the method:
  //
  //   (int32_t*)((char*)thread_base() + loop_countdown_offset(m)) == loop_countdown(m)
  //
  // thread_base() belongs to the calling thread and is valid while the thread stays attached: an
  // interpreter calls it once per call. The offset is the same for all threads, as long as the
  // method is in service. For an invalid id, and for a method with an index of 65,536 or more, it is
  // the offset of a word that nobody reads, so nothing is counted: use loop_countdown for the latter.
  // Thread: any. Cost: a call and a load.
  static void* thread_base() noexcept;
  virtual ptrdiff_t loop_countdown_offset(MethodId m) const noexcept = 0;
  // Counts the iterations up to now. If there is code that can be entered at the header of `loop` from the
  // interpreter's frame (on-stack replacement), runs the rest of the call there and returns its
  // outcome; else returns nothing, and the interpreter goes on. A trap ends that code only: if the
  // outcome has one, the interpreter must raise it again (raise) and return. May call `build`.
  //
  // `args` are the call's arguments; the code reads only those that `build` uses after the header or puts into a
  // slot. `frame` holds the host's slots: word k is the value of slot k of FunctionBuilder::loop_header. For an i32
  // or f32, the upper half of the word is ignored. If the description has a constant, an argument, or the value of
  // another slot in a slot, the frame must have the same value there, because the code relies on it. A frame with
  // another value is not entered, even if nothing uses the slot. An interpreter can have such a frame if it came by
  // a path that is not described; FunctionBuilder::make_own prevents this.
  //
  // The code may leave for MethodInfo::host_resume, whose interpreter may call this again, and so
  // on, each time with more C frames on the stack. To bound this, nothing is entered when
  //   - Options::tier is not auto;
  //   - kMostExitsToHost or more frames of compiled code on this thread wait for a host_resume;
  //   - the stack has no room for the code's frame above its limit (stack_left());
  //   - a guard of the method has reached its limit more than Options::exit_retries times
  //     (MethodInfo::host_resume). The exit that reaches it for the last time has this effect at once.
  //
  // Errors: a loop is not entered if it uses a value that is not an argument, a constant or in a
  // slot, if `build` does not describe it, or if the frame is not as described (reported once for
  // each version of the code). MethodReport::last_error says so, with loop and slot. Nothing is
  // entered if the number of arguments is wrong or there is no frame.
  static constexpr uint32_t kMostExitsToHost = 32;
  virtual std::optional<Outcome> osr_enter(MethodId m, LoopId loop, std::span<const uint64_t> args,
                                           const uint64_t* frame) = 0;

  // Returns the calling thread's counters of a method with own_code: own_schema.words() words, which the thread
  // updates with plain loads and stores. Null until the thread has counters for the method; never null inside an
  // instrumented copy. The thread must be attached (not checked).
  virtual uint64_t* counters(MethodId m) noexcept = 0;

  // Changes an option while threads run; they are not stopped. docs/embedding.md, "Options", lists the options that
  // may change, and says when each takes effect.
  //
  // The next decisions use the new value. A thread samples a method by the new value at the latest after 25 % more
  // calls of the method (at least 1,024, at most 2^20), or after about 65,536 more iterations. Estimates count earlier
  // samples at the rate of their time. The change is logged (an action "set" of no method), and decisions before
  // and after it replay with their own options. Thread: any, but not from `build`. Errors: those that Options::set
  // returns; kUnsupported for options that are fixed for life, for `interval` and `burst` if every call is sampled
  // (interval=1, tier=instrumented), if all threads share one countdown (gap=exact), if calls are not sampled, and
  // for options and values that this runtime cannot take (docs/embedding.md); for `sample_hz` also kIo,
  // kInvalidArgument and kResourceExhausted if the system refuses its signal or its clocks.
  virtual Status set(std::string_view name, std::string_view value) = 0;
  // Turns sampling off, up to every call, or back to the options' setting. Takes effect like a
  // change of `interval`, with the same errors. With fixed rates, estimates omit calls that run
  // while sampling is off; adaptive rates attribute them to the next samples.
  virtual Status observe(Sampling how) = 0;

  // Raises a trap. The calling code ends as soon as the function that raised it returns, and the innermost `invoke`
  // returns the trap, with the method and location of the call. Legal below an `invoke`: in a host function that
  // compiled code called with kCallMayTrap, in the host_entry of a method with host_may_trap, and in host_resume.
  // If raised elsewhere below an `invoke`, it ends the next code that tests for a trap before the outermost
  // `invoke` returns. A trap is dropped and counted (LossReport::traps_lost; not on a thread that is not attached)
  // if no code has taken it by then, if a later trap replaces it before that, or if it was raised without any
  // `invoke` further up.
  static void raise(TrapCode code, uint64_t detail = 0) noexcept;

  // Returns the call that returns to an address, in a body that the library compiled. A host
  // function passes __builtin_return_address(0) to learn where it was called from. For an inlined
  // body this is the inlined body's call, not its caller's. Returns nothing if no such call returns
  // to the address: it is in the stub of an interpreted method, in code of the host, or in
  // `invoke`. The method belongs to the runtime that made the code. Thread: any that has the
  // address on its stack. Cost: logarithmic in the number of calls in the body; takes no lock.
  static std::optional<CallSite> call_site(const void* return_address) noexcept;
  // Writes the current calls of all bodies on the calling thread's stack, the innermost first, and
  // returns how many it wrote: all of them, or as many as fit. In a host function that compiled code called, the
  // first is the call of that function. Frames that are not code of this runtime are skipped: host functions
  // between an `invoke` (or a call of an entry) and the compiled code that called it; calls that the host
  // interprets, in host_entry or host_resume; other runtimes.
  //
  // The walk passes frames of the host by means of their unwind tables (.eh_frame), which compilers
  // write with or without frame pointers. If a frame has no unwind table, like code that the host
  // makes itself, the walk continues from the next `invoke`, and the frames in between are missing.
  // Thread: any, for its own stack; not from a signal handler, nor from `build`, where the
  // innermost entry may be missing. Cost: for each frame of compiled code, a look-up of its code and a binary
  // search for the call; for each frame of the host up to the outermost `invoke`, one step of the unwinder, as for
  // an exception. Allocates nothing and takes no lock of the library (before glibc 2.35 the loader may take one of
  // its own).
  virtual size_t walk(std::span<CallSite> sites) noexcept = 0;
  // Writes the call stack at the calling thread's last trap, the innermost call first, down to the `invoke` that
  // returned the trap, and returns the number of entries: at most 32 frames of compiled code, with the bodies
  // inlined into them. The first is Trap::method and Trap::location. Call it before the thread runs guest code
  // again; code that is freed in the meantime is missing. Returns 0 if the trap ended no compiled code. Thread: any
  // that is attached, for its own traps. Cost: the same look-ups as for walk. Allocates nothing and takes no lock.
  virtual size_t trap_stack(std::span<CallSite> sites) const noexcept = 0;
  // Returns the place of an address in code that this runtime compiled, in any version. For a sample of your own
  // profiler, pass the program counter; for a return address, pass it less 1 to get the block of the call. Returns
  // nothing for other addresses, and for code that was freed. Thread: any, but not a signal handler. Cost: a lock,
  // a look-up of the code, and binary searches in its tables.
  virtual std::optional<CodePlace> site_at(const void* pc) const = 0;
  // Returns where a location of a method (of a Trap, CallSite, PlaceFrame, loop or exit) lies in the sources:
  // positions.h. Returns nothing if that is not known, or the method does not exist any more. Thread: any, but not
  // a signal handler nor Host::positions. Cost: a lock, a look-up, and Host::positions if the body has nothing.
  virtual SourcePositions positions(MethodId m, uint32_t location) const {
    return (void)m, (void)location, SourcePositions();
  }
  // Returns all compiled code, freed code included, with its tables and the stack samples in it. Empty unless
  // Options::keep_code is set. Thread: any, but not in a signal handler. Cost: a copy of all code, under a lock.
  virtual CodeImages code_images() = 0;

  // Returns why the last compilation of a method failed; empty if none failed, and for an id that
  // add_method did not return or that was removed. Thread: any.
  virtual std::string error_of(MethodId m) const = 0;

  // Returns the bytes of stack that guest code on the calling thread may still use before calls
  // trap stack_exhausted (Options::max_stack, stack_reserve); 0 if they are used up and host
  // functions run on the reserve. For interpreters that call themselves without compiled code in
  // between. UINT64_MAX on a thread that is not attached.
  static uint64_t stack_left() noexcept;

  // Attaches the calling thread (counters, countdowns, stack limit) until `detach`. May be nested. If the thread is
  // attached to another runtime, that attachment is suspended until this one ends, so detach in reverse order. With
  // Options::profile and a worker, the runtime may describe methods from now on that are already registered and are
  // in the profile: it compiles them before their first calls. A thread that ends while attached is detached after
  // its thread_local objects were destroyed; like any attached thread, it must end before the runtime is destroyed.
  //
  // While the thread is attached, SIGSEGV, SIGBUS, SIGFPE and SIGILL are not blocked on it, and its
  // alternate signal stack has room for their handler. If the thread blocks one of them, or its own
  // signal stack is too small, attach changes that, and the last detach changes it back. The host
  // is responsible for later changes: a trap whose signal is blocked ends the process. Errors:
  // kResourceExhausted if memory for the thread's context is refused, or if its stack has no more
  // than stack_reserve left, so that every call would trap; kInvalidArgument on a stack that is not
  // the thread's own (attach before the first switch, see create_stack).
  virtual Status attach() = 0;
  // Undoes one attach(). The last call flushes the thread's counts and detaches it. Does nothing if
  // the thread is not attached. A host function must not detach more often than it attached:
  // compiled frames below it count on the thread's context. The last detach also destroys the
  // thread's stacks (create_stack): frames that are suspended on them must not go on.
  virtual void detach() = 0;
  // Says that the calling thread's stack has no compiled frame (not checked), so that all retired code may be
  // freed. When the outermost `invoke` returns, the runtime itself frees code that nothing on the stack refers to.
  // Code that the host made with an unknown size is freed only after this call. On a thread with suspended stacks
  // (create_stack) the runtime scans those as well.
  virtual void quiescent() noexcept = 0;
  // Says that the calling thread is about to wait (for input, a lock, work), with or without
  // compiled frames on its stack. Until end_blocked() it must not run compiled code, except through `invoke`, and
  // must not call this again. Meanwhile other threads may free code that its stack does not refer to. Does nothing
  // on a thread that is not attached.
  virtual void begin_blocked() noexcept = 0;
  // Ends this state. Waits while another thread scans the stack.
  virtual void end_blocked() noexcept = 0;

  // Registers stacks of the host's own: for coroutines, fibers, green threads. Compiled code checks
  // the limit of the stack that it runs on, and each stack has its own `invoke`s and its own raised
  // trap, so the runtime must know which stack a thread is on. The host registers each stack once
  // and announces each switch:
  //
  //   create_stack(low, bytes)     [low, low + bytes) is a stack, with nothing on it
  //   switch_stack(to)             right before the host switches to it; null: the thread's own stack
  //   destroy_stack(stack)         it is no longer a stack; frames that are suspended on it are dropped
  //
  // Between switch_stack and the switch, the host must not call the library. Compiled code may be
  // suspended in any host function that it has called, on any number of stacks, and continue in any
  // order; code that such a stack refers to is kept. An `invoke` must return on the stack that it
  // was called on, and a trap ends the innermost `invoke` of its stack; therefore the first
  // function of a fiber should use `invoke`. Not from `build`.
  //
  // A stack belongs to the thread that created it until it is destroyed; other threads are refused.
  // (Suspended frames count in that thread's counters.) A thread pool can move fibers between
  // threads before they begin or after they have ended.
  //
  // After a fiber has ended, another may begin on its stack. If it is suspended instead, destroy
  // the stack and create it again first. `low` is not owned: the memory must stay mapped until
  // destroy_stack, or until the thread detaches. Pages that were never touched are not read.
  // create_stack allocates a small record; switch_stack allocates nothing and takes no lock.
  // Executions of timed loops (Options::loops) that span a switch are not recorded.
  //
  // Errors of create_stack: kInvalidArgument if the thread is not attached or the range is invalid;
  // kResourceExhausted if stack_reserve would leave nothing of it to compiled code. max_stack
  // applies to it too.
  virtual Result<NativeStack*> create_stack(void* low, size_t bytes) = 0;
  // Errors: kInvalidArgument if the thread is not attached, has said that it is blocked, or is on
  // another stack than it last announced, or if `to` belongs to another thread. The switch is then
  // not registered, and the host must not switch.
  virtual Status switch_stack(NativeStack* to) = 0;
  // Errors: kInvalidArgument for the stack that the thread is on, and for a stack of another
  // thread. Null is accepted. Suspended frames on it are dropped as by a trap: no destructor runs.
  virtual Status destroy_stack(NativeStack* stack) = 0;

  // Flushes all methods of the calling thread, whatever their counts, and waits until the worker
  // has finished its queue, compilations included. For tests, ends of phases, and reports. Not from
  // a host function: a compilation that it waits for may wait for the caller. Does nothing, and
  // says so in the log, if `build` calls it.
  virtual void flush() = 0;

  // Returns a report of everything that the runtime did so far. Thread: any; the report is
  // consistent per method, but not across methods. Cost: copies the data of every method and
  // decision under the runtime's lock, and flushes wait for it meanwhile. For ends of phases.
  virtual Report report() const = 0;
  // Returns Report::saved alone. Thread: any. Cost: two strings.
  virtual SavedReport saved_report() const = 0;
  // Returns the merged profile of everything flushed so far, with the executions that optimized code has counted
  // (see MethodProfile), but without methods of several blocks that have no counting copy yet, because they were
  // called so rarely. Thread and cost: as for report.
  virtual Profile profile() const = 0;

  // Writes Options::profile: this process's profile merged with the present content of the file.
  // The counts of the file are multiplied by profile_decay, except those of methods that relied on
  // the saved profile and have not drifted. Flushes the calling thread first.
  //
  // May be called repeatedly, against the loss of a killed process: the run is counted once, and other runs fade
  // once for it. The destructor writes the profile only if this was never called, and logs errors. Does nothing
  // without the option. Does not wait for queued compilations. Thread: any, but not from a host function nor from
  // `build` (it flushes). Cost: reads and writes the whole file, with the runtime's lock held. For a run that has
  // learnt nothing, the first call only appends a count to the end of the file (docs/profiles.md). Errors: kIo, and
  // kCorruptInput for a file that is not a profile; such a file is not changed.
  virtual Status save_profile() = 0;

  // Returns the observations of earlier processes (Options::profile) at a site, for a host that
  // compiles by itself or chooses how to describe a method. profile_query.h has the keys. Returns
  // nothing without such a profile. Thread: any, also from `build`. Cost: linear in the number of
  // methods of the profile, with the runtime's lock held; reads the whole file the first time.
  virtual std::optional<ProfileAnswer> query(std::string_view stage, std::string_view scope_hash,
                                             std::string_view key) {
    (void)stage, (void)scope_hash, (void)key;
    return std::nullopt;
  }

  // Returns the loops of all methods that were compiled and are timed, most cycles first. Empty without
  // Options::loops; with loop_functions also function bodies. Only flushed counts are included. Thread: any.
  virtual std::vector<LoopReport> loops() const = 0;
  // Measures loops by a counter of the host instead of cycles. Call it before the first thread attaches. Without
  // cycles, the share of a loop in its thread's time is unknown. Errors: kInvalidArgument if only one of the two
  // functions is given, or if a thread has attached before. Thread: any.
  virtual Status set_loop_meter(const LoopMeter& meter) {
    (void)meter;
    return Error{ErrorCode::kUnsupported, "set_loop_meter: this runtime measures cycles only"};
  }
  // Keeps, for each thread that attaches later, the first `count` executions of timed loops (24 bytes each, 32 once
  // the thread has detached). More than 2^20 count as 2^20. Thread: any.
  virtual void keep_loop_executions(uint32_t count) { (void)count; }
  // Returns the kept executions in the order of their ends, with those of detached threads first.
  // Thread: any.
  virtual std::vector<LoopExecution> loop_executions() const { return {}; }

  // Makes `who` receive the events of this runtime from now on: events.h has the kinds, their
  // order, the threads that call it, and the cost. Returns the number of the last record that it
  // does not receive; report() includes earlier events. `who` is not owned, and must live until it
  // is unsubscribed or the runtime has been destroyed.
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
  // Ends the subscription. When it returns, `who` is not being called on another thread and will
  // not be called again; earlier events have been delivered. So the caller must not hold a lock
  // that a subscriber waits for. A subscriber may unsubscribe itself, or others, while it is being
  // called: then records that have not been delivered are dropped. Thread: any. Errors: kNotFound
  // when it is not subscribed.
  virtual Status unsubscribe(EventSubscriber& who) {
    (void)who;
    return Error{ErrorCode::kNotFound, "unsubscribe: this runtime tells of no events"};
  }

  // Removes and returns the records of log probes that all threads have made so far, with those of
  // detached threads first; for each thread in order, oldest first. A thread's ring keeps the
  // latest log_records, and the same number is kept for all detached threads together. Lost records
  // are counted in LossReport::log_records and, while the thread is attached, at their site.
  // Thread: any.
  virtual std::vector<LogRecord> read_log() = 0;

  // Makes a format for FunctionBuilder::log (log_text.h has the placeholders). The same text has
  // the same format. Saved profiles then have the latest lines, with their formats: those that
  // read_log has not removed when the profile is saved. Thread: any. Errors: kInvalidArgument, with
  // position and rule, for a text that is no format; kResourceExhausted beyond
  // LogFormat::kMostFormats.
  virtual Result<LogFormat> add_log_format(std::string_view text) {
    (void)text;
    return Error{ErrorCode::kUnsupported, "add_log_format: this runtime keeps no log"};
  }
  // Returns the text of a format; empty if add_log_format has not made it. Thread: any.
  virtual std::string log_format(LogFormat format) const {
    (void)format;
    return {};
  }

  // Returns the text form of a method's IR. Describes the method again: `build` runs on the calling
  // thread. Waits for a compilation of the method that is under way. Thread: any. Cost: describing
  // and printing. Errors: the error of `build`; kInvalidArgument for an id that add_method did not
  // return or that was removed, and if it would wait for its own caller (a `build` of the method).
  virtual Result<std::string> ir(MethodId m) = 0;
};

// Attaches the thread for the duration of a scope. The scope must end before the runtime does.
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
  // Returns true if the runtime still exists.
  bool ends_inside() const noexcept;

  Runtime& runtime_;
  Status status_;
  bool watched_ = false;  // true if the runtime knows of the scope
};

// Says that the thread is blocked for the duration of a scope. The scope must end before the
// runtime does.
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
