// uptier.h: the C API, whole. C99; also compiles as C++.
//
//   options -> runtime -> add_method ... -> attach -> invoke / call entries -> flush, report ->
//   destroy
//
// The library is C++ inside: a C program links it with the C++ standard library, which
// `pkg-config --libs uptier` and CMake's uptier::uptier name by themselves.
//
// Rules of every function here:
//   Errors:    returned as uptier_status, with a sentence in `error` (may be NULL, see c_types.h).
//              NULL handles, ids out of range, counts and sizes that do not fit give
//              UPTIER_INVALID_ARGUMENT and change nothing. Outputs (`out`) may not be NULL unless
//              it says so; they are written on success only. Memory that is refused is
//              UPTIER_RESOURCE_EXHAUSTED, with nothing changed. No exception leaves the library,
//              and one must not leave a callback: the process ends if it does.
//   Ownership: what `create` returned is the caller's until `destroy`, which accepts NULL. Strings
//              and arrays passed in are copied unless it says otherwise. Strings returned as
//              const char* are static.
//   Thread:    any, at the same time, unless it says otherwise.
#pragma once

#include "uptier/c_builder.h"
#include "uptier/c_policy.h"
#include "uptier/c_report.h"
#include "uptier/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Options ------------------------------------------------------------------------------------

// Creates options with their defaults. Thread, of all option functions: one at a time per handle.
uptier_status uptier_options_create(uptier_options** out, uptier_error* error) UPTIER_NOEXCEPT;
// Creates options from the environment: UPTIER_<NAME> for every option; nothing else in the library
// reads the environment. Errors: UPTIER_INVALID_ARGUMENT with the variable's legal range.
uptier_status uptier_options_from_env(uptier_options** out, uptier_error* error) UPTIER_NOEXCEPT;
// Sets one option from text, as `uptier run -O name=value` does: ("interval", "64"), ("tier",
// "baseline"). Errors: UPTIER_NOT_FOUND for the name, UPTIER_INVALID_ARGUMENT with the legal range.
uptier_status uptier_options_set(uptier_options* options, const char* name, const char* value,
                                 uptier_error* error) UPTIER_NOEXCEPT;
// Writes the table of all options, with values, units, ranges and reasons. See "Text" in
// c_report.h.
uptier_status uptier_options_text(const uptier_options* options, char* buffer, size_t capacity,
                                  size_t* length, uptier_error* error) UPTIER_NOEXCEPT;
void uptier_options_destroy(uptier_options* options) UPTIER_NOEXCEPT;

// How important a line of the library's log is. WARNING: something was lost or left out, and the
// runtime goes on. ERROR: what was asked for did not happen.
enum { UPTIER_LOG_INFO, UPTIER_LOG_WARNING, UPTIER_LOG_ERROR };
typedef uint32_t uptier_log_level;
// Receives one line of the library's log: `size` bytes without a newline, and a 0 after them, valid
// during the call. Any thread, several at once; it must not call the runtime.
typedef void (*uptier_log_function)(void* user, uptier_log_level level, const char* line,
                                    size_t size);
// Sets who receives what the library has to say when nobody asked. NULL, the default: stderr. `user`
// must outlive every runtime that is created with these options.
uptier_status uptier_options_set_log(uptier_options* options, uptier_log_function log, void* user,
                                     uptier_error* error) UPTIER_NOEXCEPT;

// ---- Runtime ------------------------------------------------------------------------------------
//
// fork(): the child may exit, exec, and make runtimes of its own. Of its parent's it flushes, writes
// and frees nothing: destroy, detach and the end of a thread leave them alone, and functions that
// return a status answer UPTIER_FORKED where they would do something. It must not call entries, nor
// return into compiled code.

// Creates a runtime.
//
//   options     copied; NULL for the defaults
//   trace_path  a trace file (mode 0600) that receives what is observed; a regular file of that
//               name is replaced. NULL for none
//
// Errors: UPTIER_RESOURCE_EXHAUSTED when the code region or the worker is refused, UPTIER_IO for
// the trace file.
uptier_status uptier_runtime_create(const uptier_options* options, const char* trace_path,
                                    uptier_runtime** out, uptier_error* error) UPTIER_NOEXCEPT;

// Takes a trace: the bytes of a trace file, one after the other, for a pipe, a socket or memory.
typedef struct uptier_trace_sink {
  size_t size;  // sizeof(uptier_trace_sink)
  void* user;   // passed to the functions

  // Takes all of `count` bytes. Returns 0 or an errno, which is final: nothing more is written, and
  // every further event counts as lost.
  //
  // Thread: calls never overlap, but come from whichever thread hands its counts over. It must not
  //         call the runtime.
  int (*write)(void* user, const void* bytes, size_t count);
  // Takes the end, once and last, when the runtime is destroyed; not when create fails. Returns 0
  // or an errno. May be NULL.
  int (*close)(void* user);
} uptier_trace_sink;

// Creates a runtime as uptier_runtime_create does whose trace goes to `sink` (copied).
uptier_status uptier_runtime_create_traced(const uptier_options* options,
                                           const uptier_trace_sink* sink, uptier_runtime** out,
                                           uptier_error* error) UPTIER_NOEXCEPT;
// Creates a runtime whose decisions `policy` (copied; see c_policy.h) makes. Its function must stay
// callable until the runtime is destroyed.
//
//   sink  as for uptier_runtime_create_traced; NULL for no trace
uptier_status uptier_runtime_create_with_policy(const uptier_options* options,
                                                const uptier_trace_sink* sink,
                                                const uptier_policy* policy, uptier_runtime** out,
                                                uptier_error* error) UPTIER_NOEXCEPT;
// Stops the worker, flushes every method one last time, frees all code, ends the trace and calls
// every `drop`. No thread may be in compiled code, and every other thread must have detached.
void uptier_runtime_destroy(uptier_runtime* runtime) UPTIER_NOEXCEPT;

// ---- Methods ------------------------------------------------------------------------------------

// What an embedder brings. The functions are copied by add_method; they must stay callable until
// `drop` was called or the runtime is destroyed.
typedef struct uptier_host {
  size_t size;  // sizeof(uptier_host), so that later versions can append functions

  // Describes the body of `method`. Called when the method is first compiled and again for every
  // further compilation, each time with the same result (same blocks in the same order). May be
  // NULL for a method that has a host_entry only.
  //
  //   user     uptier_method_info::user
  //   builder  see c_builder.h; not to be used after the return
  //   error    never NULL; its message, if any, explains a status that is not UPTIER_OK
  //
  // Thread: a calling thread or the runtime's worker; never the same method twice at once. It must
  //         not call remove_methods, retire_methods, set, observe, flush, save_profile or destroy.
  // Errors: the method stays in the code it has, its interpreter included; a first compile that
  //         fails makes the calls of a method without one trap (UPTIER_TRAP_NO_CODE). The message
  //         appears in the report.
  uptier_status (*build)(void* user, uptier_method method, uptier_builder* builder,
                         uptier_error* error);

  // Called once per method when the library is done with `user`: by remove_methods and by destroy,
  // on the thread that called them; for a method that was retired when nothing that could ask for it
  // is left, by a thread that then calls remove_methods, retire_methods, quiescent, flush, detach or
  // destroy, or comes back from its outermost invoke. May be NULL.
  void (*drop)(void* user);
} uptier_host;

// A frame that compiled code gives back to the host's interpreter, because a guard has failed.
// Frozen.
typedef struct uptier_host_frame {
  uptier_method method;
  uint32_t pc;  // of the frame state
  uptier_guard_reason reason;
  uint32_t slot_count;
  const uint64_t* slots;  // what the frame state names, zero-extended; valid until the return
  void* user;             // uptier_method_info::user
} uptier_host_frame;

typedef struct uptier_method_info {
  size_t size;  // sizeof(uptier_method_info)

  // Names the method across processes and machines, in traces and profiles.
  uint64_t module_key;
  uint32_t function_index;
  const char* name;  // for people; need not be unique

  uptier_signature signature;
  const uptier_host* host;  // copied
  void* user;               // passed to the host's functions; never looked into

  // Optional: code with exactly `signature` that runs the method in UPTIER_TIER_HOST until the
  // library's own is installed. Must stay callable until `drop`. May uptier_raise only
  // with host_may_trap.
  //
  // Nothing says which method it is called for, `user` neither: a host whose interpreter is one
  // function makes the method (a closure) argument 0. It takes one C function for each signature.
  // Only tier=auto runs it. The fixed tiers compile at the first call, when nothing was seen yet.
  uptier_code host_entry;
  // Optional: runs the rest of a call that a failing guard has left, and returns the bits of its
  // result. It may uptier_raise. Without it such a call ends with UPTIER_TRAP_GUARD_FAILED.
  //
  // It may run guest code, enter loops (uptier_runtime_osr_enter), and add and retire methods. Exits
  // are counted: where a guard keeps failing (options exit_limit, exit_retries), the method loses its
  // compiled code for good. What it guesses is the host's to change before that, with another method.
  uint64_t (*host_resume)(const uptier_host_frame* frame);

  // 1 when `host_entry` may return with a trap raised, else 0: its calls then go through a few
  // instructions that look for one, and what it returns with a trap is not looked at.
  uint32_t host_may_trap;
  // 1 when `build` needs nothing that `host_entry` has seen, else 0: what a saved profile knows to be
  // hot is then optimized at its first call, without having been interpreted.
  uint32_t describes_at_once;
} uptier_method_info;

// Registers a method; nothing is compiled yet. `drop` is not called when this fails. Cost: about a
// stub. Errors: UPTIER_RESOURCE_EXHAUSTED past the option max_methods; UPTIER_UNSUPPORTED for
// structs of a later version, whose members this one would overlook.
uptier_status uptier_runtime_add_method(uptier_runtime* runtime, const uptier_method_info* info,
                                        uptier_method* out, uptier_error* error) UPTIER_NOEXCEPT;
// Takes methods out of service: final flush, code retired, `drop` called. They must not run nor be
// called any more, by an entry or by other methods; their ids are refused from now on, until 4,095
// methods have had the same place. Their entries go to new methods once nothing means the old ones
// (see uptier/runtime.h). Either all of them are removed or, when one id is refused, none.
uptier_status uptier_runtime_remove_methods(uptier_runtime* runtime, const uptier_method* methods,
                                            size_t count, uptier_error* error) UPTIER_NOEXCEPT;
// The same of methods that may be running: nothing calls them from now on, but frames of their code,
// and of code that has their bodies in it, go on to their end, and may come to `build` and
// host_resume. `drop` is called when none is left (see Runtime::retire_methods in uptier/runtime.h).
uptier_status uptier_runtime_retire_methods(uptier_runtime* runtime, const uptier_method* methods,
                                            size_t count, uptier_error* error) UPTIER_NOEXCEPT;

// Returns the address that callers hold, a C function of the method's signature, constant for the
// method's life. It may be called from an attached thread. A trap ends all frames up to the innermost
// invoke of that stack, as longjmp does; with no invoke under way there, it ends the process with a
// message.
uptier_status uptier_runtime_entry(const uptier_runtime* runtime, uptier_method method,
                                   uptier_code* out, uptier_error* error) UPTIER_NOEXCEPT;

// ---- Running ------------------------------------------------------------------------------------

// How a call ended. Frozen.
typedef struct uptier_outcome {
  uint64_t bits;         // the result's bits, zero-extended; 0 without result or when it trapped
  uint64_t detail;       // what uptier_raise passed
  uptier_trap trap;      // UPTIER_TRAP_NONE when there is a result
  uint32_t location;     // uptier_build_set_location of the trapping instruction or call
  uptier_method method;  // whose code trapped, or called the host function that raised it
} uptier_outcome;

// Calls a method with the bits of its arguments (zero-extended, one word each) and catches traps.
// May be nested inside host functions. Attaches the thread for the duration if it is not.
//
//   args   `count` words, as many as the signature has parameters
//   out    written whenever the call was made: with UPTIER_OK and with UPTIER_TRAPPED; may be NULL
//
// Errors: UPTIER_TRAPPED; those of uptier_runtime_attach.
uptier_status uptier_runtime_invoke(uptier_runtime* runtime, uptier_method method,
                                    const uint64_t* args, size_t count, uptier_outcome* out,
                                    uptier_error* error) UPTIER_NOEXCEPT;

// The same with limits, beyond which it ends with UPTIER_TRAP_INTERRUPTED or UPTIER_TRAP_OUT_OF_FUEL.
//
//   timeout_ns   wall time in nanoseconds; 0: no limit
//   fuel         calls and loop iterations; 0: the option `fuel`, without which nothing counts them
uptier_status uptier_runtime_invoke_limited(uptier_runtime* runtime, uptier_method method,
                                            const uint64_t* args, size_t count, uint64_t timeout_ns,
                                            uint64_t fuel, uptier_outcome* out,
                                            uptier_error* error) UPTIER_NOEXCEPT;
// Ends the innermost invoke of a thread with UPTIER_TRAP_INTERRUPTED; see Runtime::interrupt in
// uptier/runtime.h. `thread` is what uptier_runtime_thread_number returned on it; 0: all attached
// threads. Any thread; not from a signal handler. Errors: UPTIER_NOT_FOUND.
uptier_status uptier_runtime_interrupt(uptier_runtime* runtime, uint32_t thread,
                                       uptier_error* error) UPTIER_NOEXCEPT;
// Returns the number of the calling thread's attachment, from 1; 0 when it is not attached.
uint32_t uptier_runtime_thread_number(const uptier_runtime* runtime) UPTIER_NOEXCEPT;
// Returns the fuel that the calling thread's innermost invoke has left; UINT64_MAX without a limit.
uint64_t uptier_runtime_fuel_left(const uptier_runtime* runtime) UPTIER_NOEXCEPT;

// For loops of a host's interpreter, on an attached thread. Sets `*out` to the thread's countdown
// of the method's loops: the interpreter decrements it at every back edge, and when it is 0 or
// below calls osr_enter. The word is the thread's, and goes when the thread detaches: also when the
// invoke returns that attached it. Errors: UPTIER_INVALID_ARGUMENT also when the thread is not attached.
uptier_status uptier_runtime_loop_countdown(uptier_runtime* runtime, uptier_method method,
                                            int32_t** out, uptier_error* error) UPTIER_NOEXCEPT;
// Sets `*out` to where that word is from uptier_thread_base() on, in bytes: the same for all threads,
// for as long as the method is in service. So a host may keep it with the method, and each call of
// its interpreter asks for the base alone, once. Thread: any.
uptier_status uptier_runtime_loop_countdown_offset(const uptier_runtime* runtime,
                                                   uptier_method method, ptrdiff_t* out,
                                                   uptier_error* error) UPTIER_NOEXCEPT;
// Returns where the calling thread's words are; good while the thread stays attached. On one that is
// not attached they are words that all such threads share and nobody counts by. Never NULL. Cost: a
// call and a load.
void* uptier_thread_base(void) UPTIER_NOEXCEPT;
// Counts the iterations, and if there is code that can be entered at the header of `loop` from the
// interpreter's frame, runs the rest of the call there: `*entered` is 1, and the rest is as for
// invoke, except that a trap is the interpreter's to raise again. Otherwise `*entered` is 0 and the
// interpreter goes on. `args` are the call's arguments; `loop` is what uptier_build_loop_header
// returned, ids from 1 in build order; `frame` are the host's slots: word k is the value of slot k,
// of that variable's type, zero-extended. All words are read whenever there is code to enter, so what
// decides their types (the host's plan) must be made before this is called, which may call `build`.
//
// A slot that was described as a constant or as an argument, or as the same value as another slot,
// must still be that, also where nothing uses it: a frame in which it is not is not entered, and
// uptier_runtime_method_error names loop and slot. An interpreter may have come by ways that are not
// described; uptier_build_make_own makes this safe.
//
// There is nothing to enter in the fixed tiers, while 32 frames of the thread wait for a host_resume,
// where the stack has no room, and when a guard of the method was banned.
uptier_status uptier_runtime_osr_enter(uptier_runtime* runtime, uptier_method method,
                                       uptier_loop loop, const uint64_t* args, size_t count,
                                       const uint64_t* frame, int* entered, uptier_outcome* out,
                                       uptier_error* error) UPTIER_NOEXCEPT;

// Changes an option while threads run, which go on. docs/embedding.md, "Options", lists which, and
// what a runtime has for life; see Runtime::set in
// uptier/runtime.h for when threads notice. Not from `build`. Errors: those of uptier_options_set;
// UPTIER_UNSUPPORTED for what a runtime has for life.
uptier_status uptier_runtime_set(uptier_runtime* runtime, const char* name, const char* value,
                                 uptier_error* error) UPTIER_NOEXCEPT;
// Samples as the options say, not at all, or at every call. Errors: UPTIER_UNSUPPORTED where every
// call is sampled for life, by turns, or none.
enum { UPTIER_SAMPLING_BY_OPTIONS, UPTIER_SAMPLING_OFF, UPTIER_SAMPLING_EVERY };
typedef uint32_t uptier_sampling;
uptier_status uptier_runtime_observe(uptier_runtime* runtime, uptier_sampling how,
                                     uptier_error* error) UPTIER_NOEXCEPT;

// Raises a trap: the calling code ends with it as soon as the function that raised it returns, and
// the innermost invoke returns it. Legal in a host function that compiled code called with
// UPTIER_CALL_MAY_TRAP, in the host_entry of a method with host_may_trap, and in host_resume;
// raised elsewhere, it ends whichever code next looks for a trap before the outermost invoke
// returns, or is dropped and counted (uptier_totals, traps_lost). Errors: UPTIER_INVALID_ARGUMENT
// for UPTIER_TRAP_NONE or an unknown code, and when no invoke is under way.
uptier_status uptier_raise(uptier_trap code, uint64_t detail) UPTIER_NOEXCEPT;

// Where a call of a body was made. Frozen.
typedef struct uptier_site {
  uptier_method method;
  uint32_t location;  // uptier_build_set_location of the call
} uptier_site;

// Finds the call that returns to an address, in a body that the library compiled: what a host
// function learns from __builtin_return_address(0). Returns 1 and fills `*out`, or 0 for an address
// that no such call returns to. Any thread that has the address on its stack; takes no lock.
int uptier_call_site(const void* return_address, uptier_site* out) UPTIER_NOEXCEPT;
// Writes where the calling thread's bodies stand, the innermost first, `capacity` at most, and
// returns how many it wrote. Bodies that were inlined have entries of their own; host functions,
// interpreted calls and other runtimes have none. Not from a signal handler nor from `build`. Takes
// no lock and allocates nothing; Runtime::walk in uptier/runtime.h says how the host's frames are
// passed by. Returns 0 for a NULL runtime or NULL `sites`.
size_t uptier_runtime_walk(uptier_runtime* runtime, uptier_site* sites,
                           size_t capacity) UPTIER_NOEXCEPT;

// Returns the bytes of stack that the calling thread's guest code may still take before calls trap
// UPTIER_TRAP_STACK_EXHAUSTED; 0 when nothing is left of them. UINT64_MAX on a thread that is not
// attached. An interpreter that calls itself without compiled code in between asks here.
uint64_t uptier_stack_left(void) UPTIER_NOEXCEPT;

// Attaches the calling thread (counters, countdowns, stack limit) until as many detaches. A thread
// that invokes often should attach once. Attached to one runtime at a time; detach in reverse
// order. With the option profile and a worker, methods that are registered by then may be described
// (`build`) from here on. Errors: UPTIER_RESOURCE_EXHAUSTED when memory for the thread's context is
// refused, and for a stack that is no larger than the option stack_reserve; UPTIER_INVALID_ARGUMENT on
// a stack that is not the thread's own.
uptier_status uptier_runtime_attach(uptier_runtime* runtime, uptier_error* error) UPTIER_NOEXCEPT;
// Flushes what the calling thread has counted and detaches it with the last of as many calls as it
// attached; nothing when it is not attached. Must not be called from a host function more often
// than that function attached. Destroys the thread's stacks.
uptier_status uptier_runtime_detach(uptier_runtime* runtime) UPTIER_NOEXCEPT;
// Says that the calling thread holds no compiled frame right now, so that retired code may be
// freed. The outermost invoke says so by itself. Cheap: a store, unless there is code to free.
uptier_status uptier_runtime_quiescent(uptier_runtime* runtime) UPTIER_NOEXCEPT;
// Stacks of the host's own, for coroutines, fibers, green threads: see "create_stack" in
// uptier/runtime.h. A thread that is attached names a stack once, and announces each swap:
//
//   uptier_stack_create    [low, low + bytes) is a stack with nothing on it; the memory is not owned
//   uptier_stack_switch    right before the host swaps to it; NULL: the thread's own stack
//   uptier_stack_destroy   before the memory is unmapped; what is suspended there is dropped
//
// A stack belongs to the thread that created it, and goes with its last detach. Errors:
// UPTIER_INVALID_ARGUMENT for another thread's stack, for a switch from a stack that the thread is
// not on, and to destroy the one that it is on; UPTIER_RESOURCE_EXHAUSTED for one that is no larger
// than the option stack_reserve. A switch that failed has not happened: do not swap.
typedef struct uptier_stack uptier_stack;
uptier_status uptier_stack_create(uptier_runtime* runtime, void* low, size_t bytes,
                                  uptier_stack** out, uptier_error* error) UPTIER_NOEXCEPT;
uptier_status uptier_stack_switch(uptier_runtime* runtime, uptier_stack* to,
                                  uptier_error* error) UPTIER_NOEXCEPT;
uptier_status uptier_stack_destroy(uptier_runtime* runtime, uptier_stack* stack,
                                   uptier_error* error) UPTIER_NOEXCEPT;
// Says that the calling thread is about to wait (for input, a lock, work), with compiled frames on
// its stack or without: until end_blocked it runs no compiled code, and code that its stack does
// not refer to can be freed without it. Nothing on a thread that is not attached; does not nest.
uptier_status uptier_runtime_begin_blocked(uptier_runtime* runtime) UPTIER_NOEXCEPT;
uptier_status uptier_runtime_end_blocked(uptier_runtime* runtime) UPTIER_NOEXCEPT;
// Flushes all methods of the calling thread and waits until the worker has handled what was queued,
// compilations included. For tests, ends of phases, and reports. Not from a host function nor from
// `build`.
uptier_status uptier_runtime_flush(uptier_runtime* runtime) UPTIER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
