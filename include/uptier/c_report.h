// c_report.h: what a runtime of the C API tells; part of uptier.h, which is what programs include.
//
// All functions here take a lock, and but for queries and the log they look at every method: for
// ends of phases, not for inner loops. Counts are those of the last flush of each thread.
#pragma once

#include "uptier/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uptier_runtime uptier_runtime;
typedef struct uptier_options uptier_options;

// ---- Text ---------------------------------------------------------------------------------------

// Functions that write text do it as snprintf does: at most `capacity` bytes including the NUL,
// which is always there when capacity is not 0; `*length` (may be NULL) receives the length of the
// whole text without the NUL, so the text was cut if it is not below capacity, which is no error.
// `buffer` may be NULL when capacity is 0. A running program's text may grow between two calls.

// Writes the report as a table for people, `methods_shown` methods at most (0: all).
uptier_status uptier_runtime_report_text(const uptier_runtime* runtime, size_t methods_shown,
                                         char* buffer, size_t capacity, size_t* length,
                                         uptier_error* error) UPTIER_NOEXCEPT;
// Writes the merged profile of everything flushed so far, in the text form of `uptier trace
// profile`.
uptier_status uptier_runtime_profile_text(const uptier_runtime* runtime, char* buffer,
                                          size_t capacity, size_t* length,
                                          uptier_error* error) UPTIER_NOEXCEPT;
// Writes the text form of a method's IR. Calls `build` afresh. Errors: those of the build;
// UPTIER_UNSUPPORTED for a method without `build`.
uptier_status uptier_runtime_ir_text(uptier_runtime* runtime, uptier_method method, char* buffer,
                                     size_t capacity, size_t* length,
                                     uptier_error* error) UPTIER_NOEXCEPT;
// Writes why a method's last failed compilation failed; nothing (length 0) when none did. It runs
// on in the code it has.
uptier_status uptier_runtime_method_error(const uptier_runtime* runtime, uptier_method method,
                                          char* buffer, size_t capacity, size_t* length,
                                          uptier_error* error) UPTIER_NOEXCEPT;

// ---- Totals -------------------------------------------------------------------------------------

// Both take a struct whose `size` is set, write as much of it as the caller knows, and set `size`
// to what was written: less than the caller's if the library is the older one.

// What was counted of one method. All 0 before the first flush.
typedef struct uptier_method_totals {
  size_t size;     // in: sizeof(uptier_method_totals)
  uint64_t calls;  // counted by the stub
  uint64_t sampled_calls;
  uint64_t loop_iterations;  // counted at loop headers
  uint64_t bursts;           // sampled stretches of iterations
  uint64_t flushes;
  uint64_t osr_entries;    // into compiled code in the middle of a call
  uint64_t code_bytes;     // of its versions that are not freed
  uint64_t compile_ns;     // spent on all its versions
  uint32_t versions;       // compiled bodies ever made
  uptier_tier tier;        // of the code that calls reach now
  uint64_t osr_outs;       // frames of older optimized code that went on in newer, at a loop header
  uint64_t left;           // frames of compiled code left for plainer code or for the host
  uint64_t left_for_host;  // of these, frames that went to host_resume
} uptier_method_totals;

uptier_status uptier_runtime_method_totals(const uptier_runtime* runtime, uptier_method method,
                                           uptier_method_totals* out,
                                           uptier_error* error) UPTIER_NOEXCEPT;

// What the runtime did, and everything it lost or refused, so that nothing is hidden.
typedef struct uptier_totals {
  size_t size;  // in: sizeof(uptier_totals)
  uint64_t methods_registered;
  uint64_t methods_called;  // with calls or iterations that were counted
  uint64_t decisions;
  uint64_t code_bytes_in_service;
  uint64_t code_bytes_freed;
  uint64_t compile_ns;
  uint64_t samples_without_copy;  // due while the instrumented copy was not ready
  uint64_t slabs_refused;         // slab_budget spent
  uint64_t flushes_delayed;       // ring full; the next snapshot carries the counts
  uint64_t requests_dropped;      // queue full
  uint64_t compiles_failed;
  uint64_t code_refused;       // code_budget spent
  uint64_t trace_events_lost;  // the sink failed
  uint64_t evictions;          // methods that gave up their code for others
  uint64_t log_records;        // overwritten before they were read
  uint64_t loops_full;         // executions not timed: too many under way
  uint64_t loops_stale;        // not timed: their end was not seen
  uint64_t loops_spoiled;      // not timed: recursion hid whose iterations they were
  uint64_t polls_refused;      // versions whose loops cannot be left for newer code
  // What is not known any more, so that a long life takes no more memory than a short one.
  uint64_t methods_forgotten;    // removed ones whose places others have (option removed_kept)
  uint64_t decisions_forgotten;  // more than decisions_kept
  uint64_t versions_forgotten;   // freed ones of methods that were compiled very often
  uint64_t traps_lost;           // raised where nobody took them
  uint64_t relays;               // times that code was laid anew side by side (option relay_code)
  uint64_t relaid_bodies;        // that were moved, and
  uint64_t relaid_bytes;         // their bytes
  uint64_t calls_unattached;     // made on threads that are not attached: nothing counted them
  uint64_t keys_shared;          // methods whose key another method with another body or name has
  uint64_t unstable_bodies;      // methods that were described differently each time, and given up
  uint64_t flushes_lost;         // memory was refused to counts; the next snapshot carries them
  uint64_t code_names_lost;  // bodies of code that the file of perf_map or jit_dump does not have
} uptier_totals;

uptier_status uptier_runtime_totals(const uptier_runtime* runtime, uptier_totals* out,
                                    uptier_error* error) UPTIER_NOEXCEPT;

// ---- Log probes ---------------------------------------------------------------------------------

// What one visit of a UPTIER_PROBE_LOG saw. Frozen.
typedef struct uptier_log_record {
  uptier_method method;
  uint32_t site;    // as in the method's profile
  uint32_t tag;     // as uptier_build_probe was given it
  uint32_t thread;  // number of the attachment, from 1
  uint64_t value;   // an i32 sign-extended, an f32 as a double; else the bits
  uint64_t cycles;  // time stamp counter: of one clock for all threads, in order for each
} uptier_log_record;

// Takes records of log probes: of each thread in order, oldest first. They are those that all
// threads have made so far, so call it until `*count` is below `capacity`. What the threads' rings
// (option log_records) overwrote before is counted in uptier_totals.
//
//   records  receives at most `capacity` of them
//   count    receives how many it did
uptier_status uptier_runtime_read_log(uptier_runtime* runtime, uptier_log_record* records,
                                      size_t capacity, size_t* count,
                                      uptier_error* error) UPTIER_NOEXCEPT;

// ---- Profiles that outlive the process (option profile) -----------------------------------------

// Writes the option's file: what this process has seen, merged with what the file holds by now.
// Flushes the calling thread first. May be called again, so that what kills a process which runs
// for long takes little with it: a run is counted once. uptier_runtime_destroy writes only if this
// was never called, and cannot tell of an error. Does nothing without the option. Cost: linear in
// the file and the methods. Errors: UPTIER_IO, and UPTIER_CORRUPT_INPUT for a file that is no
// profile, which is left alone. Not from a host function nor from `build`.
uptier_status uptier_runtime_save_profile(uptier_runtime* runtime,
                                          uptier_error* error) UPTIER_NOEXCEPT;

// What an answer says.
enum {
  UPTIER_ANSWER_COUNTER = 1,  // count and estimate
  UPTIER_ANSWER_RANGE,        // count, min, max, mean
  UPTIER_ANSWER_VALUES,       // the same, entries (value, count) and other
  UPTIER_ANSWER_TARGETS,      // entries (method, count) and other
};

// What the profile of earlier processes knows of one site.
typedef struct uptier_profile_answer {
  size_t size;           // in: sizeof(uptier_profile_answer)
  uint32_t kind;         // UPTIER_ANSWER_*
  uint32_t entry_count;  // of the answer, which may be more than there was room for
  uint64_t methods;   // or inlined bodies whose sites these are; 0: an instrument of another tool
  uint64_t count;     // executions that were observed
  uint64_t estimate;  // of all executions
  uint64_t other;     // executions whose value or target is not known
  int64_t min;
  int64_t max;
  double mean;
  uint64_t samples;  // of an inlined body: calls of the root in copies that observe the site; or 0
} uptier_profile_answer;

// One value, or one callee. Frozen.
typedef struct uptier_profile_entry {
  int64_t value;
  uint64_t module_key;  // of the callee
  uint32_t function_index;
  uint32_t reserved;  // 0
  uint64_t count;
} uptier_profile_entry;

// Asks for what was seen at a site, for a host that chooses what to describe; <uptier/
// profile_query.h> says what stages, scopes and keys are ("uptier", "0x0123456789abcdef",
// "value#6", or "2:0x<hash of the callee>/value#6" in an inlined body). Linear in the methods; reads the whole file the first time.
//
//   stage     NULL for "uptier"
//   entries   receives the most frequent ones, `capacity` at most; may be NULL when that is 0
//
// Errors: UPTIER_NOT_FOUND when nothing is known of it, as without such a profile.
uptier_status uptier_runtime_query(uptier_runtime* runtime, const char* stage,
                                   const char* scope_hash, const char* key,
                                   uptier_profile_answer* out, uptier_profile_entry* entries,
                                   size_t capacity, uptier_error* error) UPTIER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
