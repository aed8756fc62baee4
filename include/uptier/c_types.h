// c_types.h: the basic types of the C API. Part of uptier.h; programs include that.
//
// Rule: ids and enumerations are plain numbers of fixed width, and any number may be passed for any
// of them. A meaningless number is refused with UPTIER_INVALID_ARGUMENT, never undefined behaviour.
// The ids below (uptier_method, uptier_loop, ...) have 0 as "none", so a zeroed id is a valid, empty
// argument. A few plain numbers count from 0; their comments say so.
//
// Structs that begin with `size` may get more members at their end; no member moves or is removed.
// The caller sets `size` to its own sizeof. If the caller is older than the library, members that
// it lacks count as 0, and the library does not write beyond the end of its struct. All other
// structs are frozen.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "uptier/opcode_table.h"

#ifdef __cplusplus
#define UPTIER_NOEXCEPT noexcept
extern "C" {
#else
#define UPTIER_NOEXCEPT
#endif

// ---- Errors -----------------------------------------------------------------------------------

// The result of a call. Every function that can fail returns one; UPTIER_OK is 0.
typedef int32_t uptier_status;
enum {
  UPTIER_OK = 0,
  UPTIER_INVALID_ARGUMENT,    // the caller broke a documented precondition
  UPTIER_INVALID_INPUT,       // IR or text that breaks a rule
  UPTIER_CORRUPT_INPUT,       // a binary file that breaks a rule of its format
  UPTIER_UNSUPPORTED,         // valid, but not handled by this build or machine
  UPTIER_RESOURCE_EXHAUSTED,  // a limit or budget is reached, or the system refused memory
  UPTIER_IO,                  // the operating system refused a file operation
  UPTIER_NOT_FOUND,
  UPTIER_TRAPPED,  // from invoke and osr_enter: the method ran and ended with a trap
  UPTIER_FORKED,   // the runtime belongs to the parent process: see "Runtime" in uptier.h
};

enum { UPTIER_MESSAGE_SIZE = 508 };

// A description of an error, in one sentence for a person.
//
// The caller owns it, usually on its stack; nothing is allocated or has to be freed. Every function
// that takes one accepts NULL. It is written if the function fails and not changed if it succeeds.
typedef struct uptier_error {
  uptier_status status;
  char message[UPTIER_MESSAGE_SIZE];  // NUL-terminated; a longer one is cut
} uptier_error;

// Returns "ok", "invalid argument", ...; "?" for a number that is no status. Static storage; any
// thread.
const char* uptier_status_name(uptier_status status) UPTIER_NOEXCEPT;

// ---- Ids --------------------------------------------------------------------------------------

// Structs, so that a compiler tells them apart. `id` 0 is none. Id n is number n - 1 of the C++ API, and
// of messages, reports and decisions: "loop 0" and "osr:0" are the loop with id 1. For a method that is
// MethodId::number(), an index (20 bits) and a generation: too large to index an array.
// clang-format off
typedef struct uptier_method { uint32_t id; } uptier_method;      // of one runtime
typedef struct uptier_value { uint32_t id; } uptier_value;        // an SSA value of one builder
typedef struct uptier_block { uint32_t id; } uptier_block;        // a basic block of one builder
typedef struct uptier_variable { uint32_t id; } uptier_variable;  // a mutable variable of one builder
typedef struct uptier_file { uint32_t id; } uptier_file;          // a file of one body
typedef struct uptier_loop { uint32_t id; } uptier_loop;          // a loop header of one builder
// clang-format on

// ---- Enumerations -----------------------------------------------------------------------------

// Types of values. A ref is a 64-bit host pointer or handle that the library does not interpret.
typedef uint32_t uptier_type;
enum {
  UPTIER_TYPE_NONE,
  UPTIER_TYPE_I32,
  UPTIER_TYPE_I64,
  UPTIER_TYPE_F32,
  UPTIER_TYPE_F64,
  UPTIER_TYPE_REF,
};

// Operations: UPTIER_OP_ADD, UPTIER_OP_DIV_S, ...; the rows of opcode_table.h.
typedef uint32_t uptier_opcode;
enum {
#define UPTIER_ROW(id, name, text, shape, types, effects) UPTIER_OP_##name,
  UPTIER_OPCODES(UPTIER_ROW)
#undef UPTIER_ROW
      UPTIER_OPCODE_COUNT
};

// The reason why a call ended without a result: UPTIER_TRAP_DIVIDE_BY_ZERO, ... UPTIER_TRAP_NONE is
// 0.
typedef uint32_t uptier_trap;
enum {
#define UPTIER_ROW(id, name, text) UPTIER_TRAP_##name,
  UPTIER_TRAPS(UPTIER_ROW)
#undef UPTIER_ROW
      UPTIER_TRAP_COUNT
};

// The reason why a guard was placed: UPTIER_GUARD_TYPE, ...
typedef uint32_t uptier_guard_reason;
enum {
#define UPTIER_ROW(id, name, text) UPTIER_GUARD_##name,
  UPTIER_GUARD_REASONS(UPTIER_ROW)
#undef UPTIER_ROW
      UPTIER_GUARD_REASON_COUNT
};

// The kinds of probes that a body may use, with the values that they take. The library observes
// blocks, edges and loops by itself.
//
//   UPTIER_PROBE_CALL_TARGET  ref or i64   an entry, counted by method; anything else is `other`
//   UPTIER_PROBE_VALUE        any          counts each value; also the sum, minimum and maximum
//   UPTIER_PROBE_LOG          any          one record per visit, for uptier_runtime_read_log
//   UPTIER_PROBE_COUNTER      i32 or i64   adds the value to one word
//   UPTIER_PROBE_HIT          none, any    adds 1, like a COUNTER of 1; a value is ignored
//   UPTIER_PROBE_GAUGE        any          keeps the last value
//   UPTIER_PROBE_RANGE        i32 or i64   number of values, sum, minimum and maximum
typedef uint32_t uptier_probe_kind;
#define UPTIER_PROBE_OF_HOST(number, name) UPTIER_PROBE_##name = number,
#define UPTIER_PROBE_OF_LIBRARY(number, name)
enum {
#define UPTIER_ROW(number, id, name, text, placed_by) UPTIER_PROBE_OF_##placed_by(number, name)
  UPTIER_PROBE_KINDS(UPTIER_ROW)
#undef UPTIER_ROW
};
#undef UPTIER_PROBE_OF_HOST
#undef UPTIER_PROBE_OF_LIBRARY

// The quality of code, in ascending order.
typedef uint32_t uptier_tier;
enum { UPTIER_TIER_HOST, UPTIER_TIER_BASELINE, UPTIER_TIER_OPTIMIZED };

// Flags of loads, stores and calls of C functions, to be combined with |.
enum {
  UPTIER_MEM_TRAPS = 1,  // a fault at this address is a trap out_of_bounds_memory
  // Load: the memory never changes while the function runs. It may be read at any time meanwhile,
  // also before guards and branches that precede the load. So do not use it for a field that exists
  // only if a guard has passed.
  UPTIER_MEM_INVARIANT = 2,
  UPTIER_MEM_FENCED = 8,     // with TRAPS: there are guard regions, see UPTIER_FENCE_BYTES
  UPTIER_CALL_MAY_TRAP = 4,  // call_host, call_indirect: the callee may raise a trap
};

// The size of a guard region, in bytes. With UPTIER_MEM_FENCED the host promises that accesses to
// this many last bytes below the base, and below base + 2^32, fault. So an i32 index that is a sum
// may become part of the address: if the sum had wrapped around below zero, the access would lie in
// a guard region.
#define UPTIER_FENCE_BYTES 65536

// An alias class, 0 to 15, to be combined with the flags of loads and stores. Accesses of different
// classes never touch the same byte while the function runs. Accesses of class 0 may touch the same
// bytes as any other access or another thread, so loads of class 0 are repeated in every iteration
// of a loop, while loads of other classes may be made only once. So a word that a host uses to stop
// a loop needs class 0. Classes have the same meaning in all methods with the same module_key and
// the same function uptier_host::build.
#define UPTIER_MEM_ALIAS_CLASS(n) ((n) << 4)

// Return the text of a number, or "?" for a meaningless one. Static storage; any thread.
const char* uptier_type_name(uptier_type type) UPTIER_NOEXCEPT;        // "i32", ...
const char* uptier_opcode_name(uptier_opcode opcode) UPTIER_NOEXCEPT;  // "add", ...
const char* uptier_trap_text(uptier_trap trap) UPTIER_NOEXCEPT;  // "integer divide by zero", ...
const char* uptier_guard_reason_name(uptier_guard_reason reason) UPTIER_NOEXCEPT;  // "type", ...
const char* uptier_probe_kind_name(uptier_probe_kind kind) UPTIER_NOEXCEPT;  // "block", "edge", ...
const char* uptier_tier_name(uptier_tier tier) UPTIER_NOEXCEPT;  // "host", "baseline", "optimized"

// ---- Signatures and code ----------------------------------------------------------------------

enum { UPTIER_MAX_PARAMS = 4096 };

// Types of a function's parameters and of its one result. Copied by every function that takes it.
typedef struct uptier_signature {
  const uptier_type* params;  // array of `param_count` types; may be NULL if that is 0
  size_t param_count;         // at most UPTIER_MAX_PARAMS
  uptier_type result;         // UPTIER_TYPE_NONE for a function without result
} uptier_signature;

// Any function. Cast it to its real type (System V ABI) before calling it. i32 is int32_t, i64
// int64_t, f32 float, f64 double, ref a data pointer.
typedef void (*uptier_code)(void);

#ifdef __cplusplus
}
#endif
