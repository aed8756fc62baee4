// uptier.h: the complete C API. C99; also compiles as C++.
//
//   options -> runtime -> add_method ... -> attach -> invoke / call entries -> flush, report -> destroy
//
// The library is C++ inside, so a C program must be linked with the C++ standard library;
// `pkg-config --libs uptier` and CMake's uptier::uptier add it.
//
// Rules of every function here:
//   Errors: returned as uptier_status, with a sentence in `error` (may be NULL, see c_types.h).
//     NULL handles, ids out of range, and invalid counts and sizes give UPTIER_INVALID_ARGUMENT and
//     change nothing. Outputs (`out`) must not be NULL unless the function says so; they are
//     written on success only. If memory is refused, the status is UPTIER_RESOURCE_EXHAUSTED and
//     nothing is changed. No exception leaves the library, and none may leave a callback: the
//     process ends if one does.
//   Ownership: the caller owns the result of `create` until it calls `destroy`, which accepts NULL.
//     Strings and arrays passed in are copied unless the function says otherwise. Strings returned
//     as const char* are static.
//   Thread: any, at the same time, unless the function says otherwise.
#pragma once

#include "uptier/c_builder.h"
#include "uptier/c_events.h"
#include "uptier/c_gather.h"
#include "uptier/c_images.h"
#include "uptier/c_policy.h"
#include "uptier/c_report.h"
#include "uptier/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Options ------------------------------------------------------------------------------------

// Creates options with their defaults. Thread, for all option functions: one at a time per handle.
uptier_status uptier_options_create(uptier_options** out, uptier_error* error) UPTIER_NOEXCEPT;
// Creates options from the environment: UPTIER_<NAME> for every option. No other function
// reads options from it. Errors: UPTIER_INVALID_ARGUMENT with the variable's legal range.
uptier_status uptier_options_from_env(uptier_options** out, uptier_error* error) UPTIER_NOEXCEPT;
// Sets one option from text, as `uptier run -O name=value` does: ("interval", "64"), ("tier",
// "baseline"), ("code_budget", "64M"). Errors: UPTIER_NOT_FOUND for an unknown name,
// UPTIER_INVALID_ARGUMENT with the legal range.
uptier_status uptier_options_set(uptier_options* options, const char* name, const char* value,
                                 uptier_error* error) UPTIER_NOEXCEPT;
// Writes the table of all options, with values, units, ranges and reasons. See "Text" in
// c_report.h.
uptier_status uptier_options_text(const uptier_options* options, char* buffer, size_t capacity,
                                  size_t* length, uptier_error* error) UPTIER_NOEXCEPT;
void uptier_options_destroy(uptier_options* options) UPTIER_NOEXCEPT;

// The importance of a line in the library's log. WARNING: something was lost or left out, and the
// runtime goes on. ERROR: a request was not carried out.
enum { UPTIER_LOG_INFO, UPTIER_LOG_WARNING, UPTIER_LOG_ERROR };
typedef uint32_t uptier_log_level;
// Receives one line of the library's log: `size` bytes without a newline, and a 0 after them, valid
// during the call. Any thread, several at once; it must not call the runtime.
typedef void (*uptier_log_function)(void* user, uptier_log_level level, const char* line,
                                    size_t size);
// Sets the receiver of the library's log: messages about problems that no return value reports.
// NULL, the default, is stderr. `user` must outlive every runtime that is created with these
// options.
uptier_status uptier_options_set_log(uptier_options* options, uptier_log_function log, void* user,
                                     uptier_error* error) UPTIER_NOEXCEPT;

// ---- Runtime ------------------------------------------------------------------------------------
//
// fork(): the child may exit, exec, and create runtimes of its own. It flushes, writes and frees
// nothing of its parent's runtimes: destroy, detach and the end of a thread do nothing with them,
// and functions that return a status return UPTIER_FORKED. The child must not call entries, and
// must not return into compiled code.

// Creates a runtime.
//
//   options     copied; NULL for the defaults
//   trace_path  a trace file to write (mode 0600); replaces a regular file of that name. NULL for none
//
// If the system refuses a thread for the worker, the runtime works as with the option workers=0,
// and says so in the log. Errors: UPTIER_RESOURCE_EXHAUSTED if the code region is refused,
// UPTIER_IO for the trace file.
uptier_status uptier_runtime_create(const uptier_options* options, const char* trace_path,
                                    uptier_runtime** out, uptier_error* error) UPTIER_NOEXCEPT;

// Receives a trace: the bytes of a trace file in order, for a pipe, a socket or memory.
typedef struct uptier_trace_sink {
  size_t size;  // sizeof(uptier_trace_sink)
  void* user;   // passed to the functions

  // Takes all of `count` bytes. Returns 0 or an errno. An errno is final: nothing more is written,
  // and every further event counts as lost.
  //
  // Thread: the runtime's worker, or any thread that flushes; calls never overlap. It must not call
  // the runtime.
  int (*write)(void* user, const void* bytes, size_t count);
  // Called once, as the last call, when the runtime is destroyed; not if create fails. Returns 0 or
  // an errno. May be NULL.
  int (*close)(void* user);
} uptier_trace_sink;

// Creates a runtime like uptier_runtime_create, with a trace that goes to `sink` (copied).
uptier_status uptier_runtime_create_traced(const uptier_options* options,
                                           const uptier_trace_sink* sink, uptier_runtime** out,
                                           uptier_error* error) UPTIER_NOEXCEPT;
// Creates a runtime with a policy of the host: `policy` (copied; see c_policy.h). Its function must
// stay callable until the runtime is destroyed.
//
//   sink  as for uptier_runtime_create_traced; NULL for no trace
uptier_status uptier_runtime_create_with_policy(const uptier_options* options,
                                                const uptier_trace_sink* sink,
                                                const uptier_policy* policy, uptier_runtime** out,
                                                uptier_error* error) UPTIER_NOEXCEPT;
// Stops the worker, flushes every method one last time, frees all code, ends the trace and calls
// every `drop`. No thread may be in compiled code, and every other thread must have detached;
// otherwise the process ends with a message (uptier_options_set_log).
void uptier_runtime_destroy(uptier_runtime* runtime) UPTIER_NOEXCEPT;

// ---- Methods ------------------------------------------------------------------------------------

// A position in the sources: see uptier/positions.h. The strings belong to the side that passes
// it, and are valid during the call. Frozen.
typedef struct uptier_position {
  const char* file;      // never NULL
  const char* function;  // that the host's own compiler has inlined; NULL: none, or not known
  uint32_t line;         // from 1; 0: not known
  uint32_t column;       // likewise
} uptier_position;
// Receives a position, and then the calls by which the host's own compiler has inlined it, the
// innermost first. It must copy what it keeps.
typedef void (*uptier_position_visitor)(void* to, const uptier_position* position);

// The functions that an embedder implements. add_method copies them. They must stay callable, and
// `user` valid, until `drop` was called or the runtime is destroyed.
typedef struct uptier_host {
  size_t size;  // sizeof(uptier_host), so that later versions can append functions

  // Describes the body of `method`. Called when the method is first compiled and again for every
  // further compilation. The description must be the same each time (Host::build in uptier/host.h).
  // May be NULL for a method that has only a host_entry.
  //
  //   user     uptier_method_info::user
  //   builder  see c_builder.h; valid during the call
  //   error    never NULL; its message, if any, explains a status that is not UPTIER_OK
  //
  // Thread: a calling thread or the runtime's worker; never the same method twice at once. It must
  // not call remove_methods, retire_methods, set, observe, flush, save_profile, gather or destroy.
  // Errors: the method stays in its present code, which may be the interpreter. If a method without
  // an interpreter fails its first compilation, its calls trap (UPTIER_TRAP_NO_CODE). The report
  // has the message.
  uptier_status (*build)(void* user, uptier_method method, uptier_builder* builder,
                         uptier_error* error);

  // Called once per method when the library no longer needs `user`: by remove_methods and by
  // destroy, on the thread that called them. For a retired method it is called when all code and
  // frames that may need it are gone, by a thread that then calls remove_methods, retire_methods,
  // quiescent, flush, detach or destroy, or returns from its outermost invoke. May be NULL.
  void (*drop)(void* user);

  // Passes the position of a location of `method`, and the calls that it is inlined by, to `visit`;
  // does nothing if it is not known. Called when somebody asks, for locations for which the body
  // has no position (uptier_build_add_position): see Host::positions in uptier/host.h. May be NULL.
  //
  //   user   uptier_method_info::user
  //   visit  to be called with `to`, during the call
  //
  // Thread: any, several at a time, with locks of the runtime held: it must not call the runtime,
  // and must not wait for a thread that does. Not called after `drop`.
  void (*positions)(void* user, uptier_method method, uint32_t location,
                    uptier_position_visitor visit, void* to);
} uptier_host;

// A frame that compiled code returns to the host's interpreter because a guard has failed. Frozen.
typedef struct uptier_host_frame {
  uptier_method method;
  uint32_t pc;  // of the frame state
  uptier_guard_reason reason;
  uint32_t slot_count;
  const uint64_t* slots;  // values of the frame state, zero-extended; valid during the call
  void* user;             // uptier_method_info::user
} uptier_host_frame;

typedef struct uptier_method_info {
  size_t size;  // sizeof(uptier_method_info)

  // Names the method across processes and machines, in traces and profiles. If both are 0, the
  // library makes a key from the name and the number of earlier methods without a key that have the
  // same name. Methods with the same key but different names or bodies cannot be told apart
  // (uptier_totals::keys_shared).
  uint64_t module_key;
  uint32_t function_index;
  const char* name;  // for people; need not be unique

  uptier_signature signature;
  const uptier_host* host;  // copied
  void* user;               // passed to the host's functions; the library does not use it

  // Optional: code with exactly `signature` that runs the method in UPTIER_TIER_HOST until the
  // library's own code is installed. Must stay callable until `drop`. May call uptier_raise only
  // with host_may_trap.
  //
  // It is not told which method it is called for, and does not get `user`. So a host whose
  // interpreter is one function passes the method (or a closure) as argument 0, and needs one C
  // function per signature. Only tier=auto runs it. The fixed tiers compile at the first call, when
  // nothing has been observed yet.
  uptier_code host_entry;
  // Optional: runs the rest of a call after a guard has failed, and returns the bits of its result.
  // It may call uptier_raise. If it is NULL, such a call ends with UPTIER_TRAP_GUARD_FAILED.
  //
  // It may run guest code, enter loops (uptier_runtime_osr_enter), and add and retire methods.
  // Exits are counted. If a guard keeps failing (options exit_limit, exit_retries), the method
  // loses its compiled code for good. Before that, the host may register another method that
  // guesses differently.
  uint64_t (*host_resume)(const uptier_host_frame* frame);

  // 1 if `host_entry` may return with a trap raised, else 0. Its calls then go through a few
  // instructions that test for a trap; its result is ignored if there is one.
  uint32_t host_may_trap;
  // 1 if `build` does not need the observations of `host_entry`, else 0. Methods that are hot in a
  // saved profile are then optimized at their first call, without being interpreted first.
  uint32_t describes_at_once;
} uptier_method_info;

// Registers a method; nothing is compiled yet. `drop` is not called if this fails. Cost: a stub of
// 32 bytes. Errors: UPTIER_RESOURCE_EXHAUSTED beyond the option max_methods; UPTIER_UNSUPPORTED for
// structs of a later version, with members that this one would overlook.
uptier_status uptier_runtime_add_method(uptier_runtime* runtime, const uptier_method_info* info,
                                        uptier_method* out, uptier_error* error) UPTIER_NOEXCEPT;
// Takes methods out of service: flushes them, retires their code, calls `drop`. They must not run
// and must not be called any more, by an entry or by other methods. Their ids are refused from now
// on, until 4,095 further methods have had the same index. Their entries are given to new methods
// once no code refers to the old ones (see uptier/runtime.h). Either all of them are removed or, if
// one id is refused, none.
uptier_status uptier_runtime_remove_methods(uptier_runtime* runtime, const uptier_method* methods,
                                            size_t count, uptier_error* error) UPTIER_NOEXCEPT;
// Takes methods out of service that may still be running. Nothing calls them from now on; frames of
// their code, and of code that has their bodies inlined, run to their end, and may still call
// `build` and host_resume. `drop` is called when no such frame is left (see Runtime::retire_methods
// in uptier/runtime.h).
uptier_status uptier_runtime_retire_methods(uptier_runtime* runtime, const uptier_method* methods,
                                            size_t count, uptier_error* error) UPTIER_NOEXCEPT;

// Returns the address for callers: a C function of the method's signature, constant for the
// method's life. Any thread may call it; on a thread that is not attached the call is not counted.
// A trap ends all frames up to the innermost invoke of that stack, as longjmp does; without an
// invoke on that stack, it ends the process (uptier/runtime.h, first comment).
uptier_status uptier_runtime_entry(const uptier_runtime* runtime, uptier_method method,
                                   uptier_code* out, uptier_error* error) UPTIER_NOEXCEPT;

// ---- Running ------------------------------------------------------------------------------------

// The outcome of a call. Frozen.
typedef struct uptier_outcome {
  uint64_t bits;         // the result's bits, zero-extended; 0 without result or when it trapped
  uint64_t detail;       // the argument of uptier_raise
  uptier_trap trap;      // UPTIER_TRAP_NONE if there is a result
  uint32_t location;     // uptier_build_set_location of the trapping instruction or call
  uptier_method method;  // the method that trapped, or that called the host function which raised
                         // the trap
} uptier_outcome;

// Calls a method with the bits of its arguments (zero-extended, one word each) and catches traps.
// May be nested inside host functions. Attaches the thread for the duration of the call if it is
// not attached. Guest code and host functions run with the default floating-point environment of a
// process; the caller's environment is restored afterwards (Runtime::invoke in uptier/runtime.h).
//
//   args   `count` words, as many as the signature has parameters
//   out    written whenever the call was made: with UPTIER_OK and with UPTIER_TRAPPED; may be NULL
//
// Errors: UPTIER_TRAPPED; UPTIER_INVALID_ARGUMENT for a method that is not in service, a wrong
// `count`, and in a subscriber; those of uptier_runtime_attach.
uptier_status uptier_runtime_invoke(uptier_runtime* runtime, uptier_method method,
                                    const uint64_t* args, size_t count, uptier_outcome* out,
                                    uptier_error* error) UPTIER_NOEXCEPT;

// The same with limits. Beyond them the call ends with UPTIER_TRAP_INTERRUPTED or
// UPTIER_TRAP_OUT_OF_FUEL.
//
//   timeout_ns   wall time in nanoseconds; 0: no limit
//   fuel         calls and loop iterations; 0: the option `fuel`. Another value needs the option, else it
//                is UPTIER_INVALID_ARGUMENT
uptier_status uptier_runtime_invoke_limited(uptier_runtime* runtime, uptier_method method,
                                            const uint64_t* args, size_t count, uint64_t timeout_ns,
                                            uint64_t fuel, uptier_outcome* out,
                                            uptier_error* error) UPTIER_NOEXCEPT;
// Ends the innermost invoke of a thread with UPTIER_TRAP_INTERRUPTED; see Runtime::interrupt in
// uptier/runtime.h. `thread` is the thread's uptier_runtime_thread_number; 0: all attached threads.
// Any thread; not from a signal handler. Errors: UPTIER_NOT_FOUND if no such thread is attached;
// UPTIER_RESOURCE_EXHAUSTED as in Runtime::interrupt.
uptier_status uptier_runtime_interrupt(uptier_runtime* runtime, uint32_t thread,
                                       uptier_error* error) UPTIER_NOEXCEPT;
// Returns 1 if the calling thread's innermost invoke is to end, else 0. A host function that waits
// should then return; it need not raise a trap. Call it when a system call returns EINTR.
int uptier_interrupted(void) UPTIER_NOEXCEPT;
// Returns the number of the calling thread's attachment, from 1; 0 if it is not attached.
uint32_t uptier_runtime_thread_number(const uptier_runtime* runtime) UPTIER_NOEXCEPT;
// Returns the fuel left to the calling thread's innermost invoke; UINT64_MAX without a limit.
uint64_t uptier_runtime_fuel_left(const uptier_runtime* runtime) UPTIER_NOEXCEPT;

// Replaces the processor's cycles as the measure of loops (option `loops`). Call it before the
// first thread attaches. `begin` returns a stamp when an execution begins; `end` returns the amount
// since the stamp, in `unit`s. Both are called on the thread that runs the loop, from instrumented
// copies only, and must not call the runtime. `unit` is copied; NULL functions restore the cycles;
// `user` must outlive the runtime. Errors: UPTIER_INVALID_ARGUMENT if a thread has attached before,
// for one function without the other, and for functions with a NULL `unit`.
typedef uint64_t (*uptier_loop_begin)(void* user);
typedef uint64_t (*uptier_loop_end)(void* user, uint64_t stamp);
uptier_status uptier_runtime_set_loop_meter(uptier_runtime* runtime, const char* unit,
                                            uptier_loop_begin begin, uptier_loop_end end,
                                            void* user, uptier_error* error) UPTIER_NOEXCEPT;
// For loops of a host's interpreter, on an attached thread. Sets `*out` to the thread's countdown
// for the method's loops. The interpreter decrements it at every back edge, and calls osr_enter
// when it is 0 or below. The word belongs to the thread and is valid until the thread detaches; if
// an invoke attached the thread, until that invoke returns. Errors: UPTIER_INVALID_ARGUMENT, also
// if the thread is not attached.
uptier_status uptier_runtime_loop_countdown(uptier_runtime* runtime, uptier_method method,
                                            int32_t** out, uptier_error* error) UPTIER_NOEXCEPT;
// Sets `*out` to the offset of that word from uptier_thread_base(), in bytes. It is the same for
// all threads, as long as the method is in service. So a host may keep it with the method, and each
// call of its interpreter needs only the base, once. For methods beyond 65,536 at a time it is the
// offset of a word that nobody reads: use uptier_runtime_loop_countdown for those. Thread: any.
uptier_status uptier_runtime_loop_countdown_offset(const uptier_runtime* runtime,
                                                   uptier_method method, ptrdiff_t* out,
                                                   uptier_error* error) UPTIER_NOEXCEPT;
// Returns the base address of the calling thread's words, valid while the thread stays attached. On
// a thread that is not attached, it is the base of words that all such threads share and that
// nobody reads. Never NULL. Cost: a call and a load.
void* uptier_thread_base(void) UPTIER_NOEXCEPT;
// Counts the iterations up to now. If there is code that can be entered at the header of `loop`
// from the interpreter's frame (on-stack replacement), runs the rest of the call there: `*entered`
// is 1, and the result is as for invoke, except that the interpreter must raise a trap again.
// Otherwise `*entered` is 0 and the interpreter goes on.
//
// `args` are the call's arguments. `loop` is the result of uptier_build_loop_header: ids from 1 in
// build order. `frame` holds the host's slots: word k is the value of slot k, of that variable's
// type; for an i32 or f32, the upper half is ignored. All words are read if there is code to enter.
// This function may call `build`, so the host must decide on the types of its slots (its plan)
// before it calls this.
//
// If the description has a constant, an argument, or the value of another slot in a slot, the frame
// must have the same value there, even if nothing uses the slot. A frame with another value is not
// entered, and uptier_runtime_method_error names loop and slot. An interpreter can have such a
// frame if it came by a path that is not described; uptier_build_make_own prevents this.
//
// Nothing is entered in the fixed tiers, while 32 frames of the thread wait for a host_resume, if
// the stack has no room, and once a guard of the method has failed too often (option exit_retries).
uptier_status uptier_runtime_osr_enter(uptier_runtime* runtime, uptier_method method,
                                       uptier_loop loop, const uint64_t* args, size_t count,
                                       const uint64_t* frame, int* entered, uptier_outcome* out,
                                       uptier_error* error) UPTIER_NOEXCEPT;

// Changes an option while threads run; they are not stopped. docs/embedding.md, "Options", lists
// the options that may change; Runtime::set in uptier/runtime.h says when threads notice. Not from
// `build`. Errors: those that uptier_options_set returns; UPTIER_UNSUPPORTED for options that are
// fixed for the life of a runtime.
uptier_status uptier_runtime_set(uptier_runtime* runtime, const char* name, const char* value,
                                 uptier_error* error) UPTIER_NOEXCEPT;
// Samples as the options say, not at all, or at every call. Errors: UPTIER_UNSUPPORTED if the
// runtime was created to sample every call, with gap=exact, or not to sample.
enum { UPTIER_SAMPLING_BY_OPTIONS, UPTIER_SAMPLING_OFF, UPTIER_SAMPLING_EVERY };
typedef uint32_t uptier_sampling;
uptier_status uptier_runtime_observe(uptier_runtime* runtime, uptier_sampling how,
                                     uptier_error* error) UPTIER_NOEXCEPT;

// Raises a trap. The calling code ends with it as soon as the function that raised it returns, and
// the innermost invoke returns it. Legal in a host function that compiled code called with
// UPTIER_CALL_MAY_TRAP, in the host_entry of a method with host_may_trap, and in host_resume. If
// raised elsewhere below an invoke, the next compiled code that tests for a trap ends with it; if
// there is none before the outermost invoke returns, it is dropped and counted (uptier_totals,
// traps_lost). Errors: UPTIER_INVALID_ARGUMENT for UPTIER_TRAP_NONE or an unknown code, and if no
// invoke is under way (Runtime::raise drops and counts such a trap).
uptier_status uptier_raise(uptier_trap code, uint64_t detail) UPTIER_NOEXCEPT;

// The place of a call in a method's body. Frozen.
typedef struct uptier_site {
  uptier_method method;
  uint32_t location;  // uptier_build_set_location of the call
} uptier_site;

// Finds the call that returns to an address, in a body that the library compiled. A host function
// passes __builtin_return_address(0). Returns 1 and fills `*out`, or 0 if no such call returns to
// the address. Any thread that has the address on its stack; takes no lock.
int uptier_call_site(const void* return_address, uptier_site* out) UPTIER_NOEXCEPT;
// Writes the current calls of all bodies on the calling thread's stack, the innermost first, at
// most `capacity`, and returns how many it wrote. Inlined bodies have entries of their own; host
// functions, interpreted calls and other runtimes have none. Not from a signal handler nor from
// `build`. Takes no lock and allocates nothing; Runtime::walk in uptier/runtime.h says how the walk
// passes frames of the host. Returns 0 for a NULL runtime or NULL `sites`.
size_t uptier_runtime_walk(uptier_runtime* runtime, uptier_site* sites,
                           size_t capacity) UPTIER_NOEXCEPT;
// Writes the call stack at the calling thread's last trap, the innermost call first, at most
// `capacity` and at most 64 entries, and returns how many it wrote: see Runtime::trap_stack in
// uptier/runtime.h. Call it before the thread runs guest code again. Returns 0 for a NULL runtime
// or NULL `sites`.
size_t uptier_runtime_trap_stack(const uptier_runtime* runtime, uptier_site* sites,
                                 size_t capacity) UPTIER_NOEXCEPT;

// Passes the position of a location to `visit`, and the calls by which the host's own compiler has
// inlined it: Runtime::positions in uptier/runtime.h. `method` and `location` are those of a
// uptier_site, a uptier_outcome or a uptier_place_frame. Returns how many it passed: 0 if the
// position is not known, the method does not exist any more, or memory is refused. Any thread; takes a
// lock, which it does not hold while it calls `visit`. Not from a signal handler nor from
// uptier_host::positions.
size_t uptier_runtime_positions(const uptier_runtime* runtime, uptier_method method,
                                uint32_t location, uptier_position_visitor visit,
                                void* to) UPTIER_NOEXCEPT;

// One body at an address of compiled code, and the code: PlaceFrame and CodePlace of
// uptier/runtime.h. Frozen.
typedef struct uptier_place_frame {
  uptier_method method;
  uint32_t site;  // of profiles: the block, or the call that an inlined body replaces; 0: unknown
  uint32_t location;  // uptier_build_set_location of the call, or with the option line_rows of any
                      // instruction; 0: not known
} uptier_place_frame;
typedef struct uptier_place {
  uint64_t version;  // serial number of the code, as in events; 0 in a stub
  uptier_tier tier;
  uint32_t instrumented;  // 1: the copy that counts
  uint32_t stub;          // 1: the stub of the method; then only its frame's method is set
  uint32_t loop;  // where the code is entered: uptier_loop::id - 1; UINT32_MAX: at its start
} uptier_place;
// Finds the place of the program that an address of compiled code belongs to. Writes the bodies
// there, the innermost first, at most `capacity`, and returns how many there are: 0 if the address
// is not in code of this runtime, or memory is refused. `place` may be NULL; so may `frames` if
// `capacity` is 0. Any thread; takes a lock, so not from a signal handler.
size_t uptier_runtime_site_at(const uptier_runtime* runtime, const void* pc, uptier_place* place,
                              uptier_place_frame* frames, size_t capacity) UPTIER_NOEXCEPT;

// Returns the bytes of stack that guest code on the calling thread may still use before calls trap
// UPTIER_TRAP_STACK_EXHAUSTED; 0 if they are used up. UINT64_MAX on a thread that is not attached.
// For interpreters that call themselves without compiled code in between.
uint64_t uptier_stack_left(void) UPTIER_NOEXCEPT;

// Attaches the calling thread (counters, countdowns, stack limit) until it has called detach as
// often as attach. A thread that invokes often should attach once. If the thread is attached to
// another runtime, that attachment is suspended until this one ends, so detach in reverse order.
// With the option profile and a worker, the runtime may call `build` from now on for methods that
// are already registered. While the thread is attached, signals of faults are not blocked on it,
// and its alternate signal stack has room for their handler (Runtime::attach in uptier/runtime.h).
// Errors: UPTIER_RESOURCE_EXHAUSTED if memory for the thread's context is refused, and for a stack
// that is no larger than the option stack_reserve; UPTIER_INVALID_ARGUMENT on a stack that is not
// the thread's own.
uptier_status uptier_runtime_attach(uptier_runtime* runtime, uptier_error* error) UPTIER_NOEXCEPT;
// Undoes one attach. The last call flushes the thread's counts and detaches it. Does nothing if the
// thread is not attached. A host function must not detach more often than it attached. The last
// detach destroys the thread's stacks.
uptier_status uptier_runtime_detach(uptier_runtime* runtime) UPTIER_NOEXCEPT;
// Says that the calling thread's stack has no compiled frame (not checked), so that retired code
// may be freed. The outermost invoke frees code by itself when it returns. Cheap: a store, unless
// there is code to free.
uptier_status uptier_runtime_quiescent(uptier_runtime* runtime) UPTIER_NOEXCEPT;
// Stacks of the host's own, for coroutines, fibers, green threads: see "create_stack" in
// uptier/runtime.h. An attached thread registers each stack once, and announces each switch:
//
//   uptier_stack_create    [low, low + bytes) is a stack with nothing on it; the memory is not owned
//   uptier_stack_switch    right before the host switches to it; NULL: the thread's own stack
//   uptier_stack_destroy   before the memory is unmapped; suspended frames on it are dropped
//
// A stack belongs to the thread that created it, and is destroyed by its last detach. Errors:
// UPTIER_INVALID_ARGUMENT for a stack of another thread, for a switch from a stack that the thread
// is not on, and for destroying the stack that it is on; UPTIER_RESOURCE_EXHAUSTED for a stack that
// is no larger than the option stack_reserve. If a switch fails, the host must not switch.
typedef struct uptier_stack uptier_stack;
uptier_status uptier_stack_create(uptier_runtime* runtime, void* low, size_t bytes,
                                  uptier_stack** out, uptier_error* error) UPTIER_NOEXCEPT;
uptier_status uptier_stack_switch(uptier_runtime* runtime, uptier_stack* to,
                                  uptier_error* error) UPTIER_NOEXCEPT;
uptier_status uptier_stack_destroy(uptier_runtime* runtime, uptier_stack* stack,
                                   uptier_error* error) UPTIER_NOEXCEPT;
// Says that the calling thread is about to wait (for input, a lock, work), with or without compiled
// frames on its stack. Until end_blocked it must not run compiled code, except through invoke, and
// must not call this again; see Runtime::begin_blocked in uptier/runtime.h.
uptier_status uptier_runtime_begin_blocked(uptier_runtime* runtime) UPTIER_NOEXCEPT;
uptier_status uptier_runtime_end_blocked(uptier_runtime* runtime) UPTIER_NOEXCEPT;
// Flushes all methods of the calling thread and waits until the worker has finished its queue,
// compilations included. For tests, ends of phases, and reports. Not from a host function nor from
// `build`.
uptier_status uptier_runtime_flush(uptier_runtime* runtime) UPTIER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
