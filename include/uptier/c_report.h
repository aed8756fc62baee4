// c_report.h: reports of a runtime, for the C API. Part of uptier.h; programs include that.
//
// All functions here take the runtime's lock. Cost: linear in the methods and decisions, also for
// the functions about one method; less for uptier_runtime_ir_text and read_log. They are for ends
// of phases, not for inner loops. Counts are as of the last flush of each thread.
#pragma once

#include "uptier/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uptier_runtime uptier_runtime;
typedef struct uptier_options uptier_options;

// ---- Text ---------------------------------------------------------------------------------------

// Functions that write text work like snprintf: they write at most `capacity` bytes, including a
// NUL, which is always written unless capacity is 0. `*length` (may be NULL) receives the length of
// the whole text without the NUL; the text was cut if that is not below capacity, which is no
// error. `buffer` may be NULL if capacity is 0. The text of a running program may grow between two
// calls.

// Writes the report as a table for people, `methods_shown` methods at most (0: all).
uptier_status uptier_runtime_report_text(const uptier_runtime* runtime, size_t methods_shown,
                                         char* buffer, size_t capacity, size_t* length,
                                         uptier_error* error) UPTIER_NOEXCEPT;
// Writes the merged profile of everything flushed so far, in the form that `uptier trace profile`
// prints.
uptier_status uptier_runtime_profile_text(const uptier_runtime* runtime, char* buffer,
                                          size_t capacity, size_t* length,
                                          uptier_error* error) UPTIER_NOEXCEPT;
// Writes the text form of a method's IR. Calls `build` again. Errors: any error of the build;
// UPTIER_UNSUPPORTED for a method without `build`.
uptier_status uptier_runtime_ir_text(uptier_runtime* runtime, uptier_method method, char* buffer,
                                     size_t capacity, size_t* length,
                                     uptier_error* error) UPTIER_NOEXCEPT;
// Writes the error of a method's last failed compilation; nothing (length 0) if none failed. The
// method keeps running in its present code.
uptier_status uptier_runtime_method_error(const uptier_runtime* runtime, uptier_method method,
                                          char* buffer, size_t capacity, size_t* length,
                                          uptier_error* error) UPTIER_NOEXCEPT;

// ---- Totals -------------------------------------------------------------------------------------

// Both functions take a struct whose `size` is set. They write as much of it as the caller knows,
// and set `size` to the number of bytes written, which is less than the caller's if the library is
// older.

// Counts of one method. Calls, samples, iterations and bursts are as of the threads' last flushes,
// and 0 before; the others are current.
typedef struct uptier_method_totals {
  size_t size;     // in: sizeof(uptier_method_totals)
  uint64_t calls;  // counted by the stub
  uint64_t sampled_calls;
  uint64_t loop_iterations;  // counted at loop headers
  uint64_t bursts;           // sampled runs of consecutive iterations
  uint64_t flushes;
  uint64_t osr_entries;    // entries into compiled code in the middle of a call
  uint64_t code_bytes;     // bytes of its versions that are not freed
  uint64_t compile_ns;     // wall time spent on all its versions
  uint32_t versions;       // compiled bodies ever made
  uptier_tier tier;        // of the code that calls run now
  uint64_t osr_outs;       // frames that went from older optimized code to newer, at a loop header
  uint64_t left;           // deoptimizations: frames that left code for baseline code or the host
  uint64_t left_for_host;  // of these, frames that continued in host_resume
} uptier_method_totals;

uptier_status uptier_runtime_method_totals(const uptier_runtime* runtime, uptier_method method,
                                           uptier_method_totals* out,
                                           uptier_error* error) UPTIER_NOEXCEPT;

// Totals of the runtime, including everything that it lost or refused.
typedef struct uptier_totals {
  size_t size;  // in: sizeof(uptier_totals)
  uint64_t methods_registered;
  uint64_t methods_called;  // methods with calls or iterations that were counted
  uint64_t decisions;
  uint64_t code_bytes_in_service;
  uint64_t code_bytes_freed;
  uint64_t compile_ns;
  uint64_t samples_without_copy;  // due before the instrumented copy was ready
  uint64_t slabs_refused;         // slab_budget used up
  uint64_t flushes_delayed;       // ring full; the next snapshot carries the counts
  uint64_t requests_dropped;      // queue full
  uint64_t compiles_failed;
  uint64_t code_refused;       // code_budget used up
  uint64_t trace_events_lost;  // the sink failed
  uint64_t evictions;          // methods whose code was freed to make room for others
  uint64_t log_records;        // overwritten before they were read
  uint64_t loops_full;         // executions not timed: too many under way
  uint64_t loops_stale;        // not timed: their end was not seen
  uint64_t loops_spoiled;      // not timed: recursion made it unclear which execution iterations
                               // belong to
  uint64_t polls_refused;      // versions whose loops cannot be left for newer code
  // Old records that were dropped so that memory does not grow with time.
  uint64_t methods_forgotten;    // removed methods whose index is used again (option removed_kept)
  uint64_t decisions_forgotten;  // more than decisions_kept
  uint64_t versions_forgotten;   // freed versions of methods that were compiled very often
  uint64_t traps_lost;           // raised, but no code took them
  uint64_t relays;               // times that code was moved to close holes between bodies (option
                                 // relay_code)
  uint64_t relaid_bodies;        // bodies that were moved
  uint64_t relaid_bytes;         // bytes of these bodies
  uint64_t calls_unattached;     // calls on threads that are not attached; not counted anywhere
                                 // else
  uint64_t keys_shared;          // methods that share their key with a method of another name or
                                 // body
  uint64_t unstable_bodies;      // methods that were described differently each time, so that the
                                 // runtime stopped compiling them
  uint64_t flushes_lost;         // flushes for which memory was refused; the next snapshot includes
                                 // their counts
  uint64_t code_names_lost;  // bodies of code whose name is not in the perf_map or jit_dump file
  uint64_t
      stack_samples_lost;  // dropped because a thread's ring was full (option sample_ring_bytes)
} uptier_totals;

uptier_status uptier_runtime_totals(const uptier_runtime* runtime, uptier_totals* out,
                                    uptier_error* error) UPTIER_NOEXCEPT;

// ---- Log probes ---------------------------------------------------------------------------------

// One visit of a UPTIER_PROBE_LOG. Frozen.
typedef struct uptier_log_record {
  uptier_method method;
  uint32_t site;    // as in the method's profile
  uint32_t tag;     // the argument of uptier_build_probe
  uint32_t thread;  // number of the attachment, from 1
  uint64_t value;   // an i32 sign-extended, an f32 as a double; else the bits
  uint64_t cycles;  // time stamp counter: the same clock for all threads, ascending for each thread
} uptier_log_record;

// Removes records of log probes and returns them: those that all threads have made so far, for each
// thread in order, oldest first. Call it until `*count` is below `capacity`. uptier_totals counts
// the records that the threads' rings (option log_records) overwrote before.
//
//   records  receives at most `capacity` records
//   count    receives their number
uptier_status uptier_runtime_read_log(uptier_runtime* runtime, uptier_log_record* records,
                                      size_t capacity, size_t* count,
                                      uptier_error* error) UPTIER_NOEXCEPT;

// ---- Profiles that outlive the process (option profile) -----------------------------------------

// Writes the option's file: this process's profile merged with the present content of the file.
// Flushes the calling thread first. May be called repeatedly, so that a process that is killed
// after a long time loses little: a run is counted once. uptier_runtime_destroy writes the file
// only if this was never called, and cannot report an error. Does nothing without the option. Cost:
// linear in the file and the methods. Errors: UPTIER_IO, and UPTIER_CORRUPT_INPUT for a file that
// is not a profile; such a file is not changed. Not from a host function nor from `build`.
uptier_status uptier_runtime_save_profile(uptier_runtime* runtime,
                                          uptier_error* error) UPTIER_NOEXCEPT;

// The kind of an answer, which says which members of it are used.
enum {
  UPTIER_ANSWER_COUNTER = 1,  // count and estimate
  UPTIER_ANSWER_RANGE,        // count, min, max, mean
  UPTIER_ANSWER_VALUES,       // the same, and entries (value, count) and other
  UPTIER_ANSWER_TARGETS,      // entries (method, count) and other
};

// Observations of earlier processes at one site.
typedef struct uptier_profile_answer {
  size_t size;           // in: sizeof(uptier_profile_answer)
  uint32_t kind;         // UPTIER_ANSWER_*
  uint32_t entry_count;  // entries of the answer; may be more than `capacity`
  uint64_t methods;   // number of methods or inlined bodies that have these sites; 0: an instrument
                      // of another tool
  uint64_t count;     // executions that were observed
  uint64_t estimate;  // estimate for all executions
  uint64_t other;     // executions whose value or target is unknown
  int64_t min;
  int64_t max;
  double mean;
  uint64_t samples;  // for an inlined body: calls of the outermost method in copies that observe
                     // the site; else 0
  uint64_t changes;  // 0: from the code that was asked about; n: from the code that it was made
                     // from, n changes ago (uptier_gather_source_id)
} uptier_profile_answer;

// One value, or one callee. Frozen.
typedef struct uptier_profile_entry {
  int64_t value;
  uint64_t module_key;  // of the callee
  uint32_t function_index;
  uint32_t reserved;  // 0
  uint64_t count;
} uptier_profile_entry;

// Returns observations at a site, for a host that chooses how to describe a method. <uptier/
// profile_query.h> explains stages, scopes and keys ("uptier", "0x0123456789abcdef", "value#6", or
// "2:0x<hash of the callee>/value#6" in an inlined body). Linear in the methods; reads the whole
// file the first time.
//
//   stage     NULL for "uptier"
//   entries   receives the most frequent ones, at most `capacity`; may be NULL if that is 0
//
// Errors: UPTIER_NOT_FOUND if there are no observations, or no saved profile.
uptier_status uptier_runtime_query(uptier_runtime* runtime, const char* stage,
                                   const char* scope_hash, const char* key,
                                   uptier_profile_answer* out, uptier_profile_entry* entries,
                                   size_t capacity, uptier_error* error) UPTIER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
