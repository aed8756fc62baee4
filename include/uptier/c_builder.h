// c_builder.h: how a C embedder describes a method's body. Part of uptier.h.
//
// The body is in SSA form, but the host never writes a phi: it defines and uses variables. The
// protocol of a block:
//
//   create_block -> [jumps to it] -> switch_to -> instructions -> one terminator
//   seal once every predecessor has been added; a loop header is sealed after its back edges
//
// Errors are sticky. At the first call that breaks a rule, the builder remembers a message; that
// call and all later ones do nothing and return none (id 0) or the error's status. The build then
// fails with that message whatever the callback returns. So a body need not check any status, and
// calls can be nested:
//
//   uptier_build_def(b, i, uptier_build_binary(b, UPTIER_OP_ADD, uptier_build_use(b, i), one));
//
// After the callback, the verifier finds the errors that only the complete body shows (types of
// operands, dominance, blocks without an end), also with a message.
//
//   Ownership: the library owns the builder. It is valid for one call of the `build` callback, and
//     so are the ids that it returns. Arrays and names passed to it are copied.
//   Thread: the one that the callback runs on.
//   Errors: UPTIER_INVALID_ARGUMENT for a NULL builder (which cannot remember it), ids that are out
//     of range in this builder, an operation of another shape, an instruction outside of a block.
//     Nothing aborts.
//   Cost: constant, except `use` (walks predecessors once) and calls (copy their arguments).
#pragma once

#include "uptier/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uptier_builder uptier_builder;

// Returns the first error so far, UPTIER_OK if there is none. `error` may be NULL.
uptier_status uptier_build_status(const uptier_builder* b, uptier_error* error) UPTIER_NOEXCEPT;

// ---- Parameters, blocks, variables ------------------------------------------------------------

// Returns parameter `index` (from 0) of the method, a value of the entry block.
uptier_value uptier_build_param(uptier_builder* b, size_t index) UPTIER_NOEXCEPT;
// Returns the type of a value; UPTIER_TYPE_NONE on error.
uptier_type uptier_build_type_of(uptier_builder* b, uptier_value v) UPTIER_NOEXCEPT;

// Blocks. The entry block exists, is sealed and is current at the start.
uptier_block uptier_build_create_block(uptier_builder* b) UPTIER_NOEXCEPT;
// Makes a block current. The previous block must have ended, and each block is filled once. The
// order of these calls is the build order, which determines the site ids.
uptier_status uptier_build_switch_to(uptier_builder* b, uptier_block block) UPTIER_NOEXCEPT;
// Says that all jumps to the block have been made. Once per block.
uptier_status uptier_build_seal(uptier_builder* b, uptier_block block) UPTIER_NOEXCEPT;
// Returns the block that instructions are added to; none after a terminator (which is no error).
uptier_block uptier_build_current(const uptier_builder* b) UPTIER_NOEXCEPT;

// Variables. A variable is 0 on a path that has not defined it.
uptier_variable uptier_build_declare(uptier_builder* b, uptier_type type) UPTIER_NOEXCEPT;
uptier_status uptier_build_def(uptier_builder* b, uptier_variable x,
                               uptier_value v) UPTIER_NOEXCEPT;  // same type
uptier_value uptier_build_use(uptier_builder* b, uptier_variable x) UPTIER_NOEXCEPT;

// Sets the source location of the following instructions, in the host's own unit, such as a
// bytecode offset.
uptier_status uptier_build_set_location(uptier_builder* b, uint32_t location) UPTIER_NOEXCEPT;
// Adds a file of the sources to the body's file table. Returns it; the same path gives the same
// file. Cost: linear in the number of files.
uptier_file uptier_build_add_file(uptier_builder* b, const char* path) UPTIER_NOEXCEPT;
// Says where a location lies in the sources, in any order and also after its instructions: once for
// each location; the same again is accepted. Only positions of the method's first description are
// kept. uptier_host::positions is the other way to give them.
//
//   line, column  from 1; 0: not known
//   inlined_at    if the host's own compiler has inlined the code there: the location of the call,
//                 which has a position of its own; otherwise UPTIER_NOT_INLINED
//
// Cost: 20 bytes for a location.
#define UPTIER_NOT_INLINED UINT32_MAX
uptier_status uptier_build_add_position(uptier_builder* b, uint32_t location, uptier_file file,
                                        uint32_t line, uint32_t column,
                                        uint32_t inlined_at) UPTIER_NOEXCEPT;

// ---- Constants and operations -----------------------------------------------------------------

uptier_value uptier_build_i32(uptier_builder* b, int32_t v) UPTIER_NOEXCEPT;
uptier_value uptier_build_i64(uptier_builder* b, int64_t v) UPTIER_NOEXCEPT;
uptier_value uptier_build_f32(uptier_builder* b, float v) UPTIER_NOEXCEPT;
uptier_value uptier_build_f64(uptier_builder* b, double v) UPTIER_NOEXCEPT;
uptier_value uptier_build_ref(uptier_builder* b, const void* p) UPTIER_NOEXCEPT;
// A constant, given by its bits; bits above the type's width must be 0.
uptier_value uptier_build_constant(uptier_builder* b, uptier_type type,
                                   uint64_t bits) UPTIER_NOEXCEPT;

// Operations. Their types come from the operands. The rows of opcode_table.h give the shape and the
// types of each operation: kUnary and kTest; kBinary and kCompare; kConvert; kLoad; kStore.
uptier_value uptier_build_unary(uptier_builder* b, uptier_opcode op,
                                uptier_value a) UPTIER_NOEXCEPT;
uptier_value uptier_build_binary(uptier_builder* b, uptier_opcode op, uptier_value a,
                                 uptier_value c) UPTIER_NOEXCEPT;
uptier_value uptier_build_convert(uptier_builder* b, uptier_opcode op, uptier_type to,
                                  uptier_value a) UPTIER_NOEXCEPT;
// Returns `a` when `condition` (i32) is not 0, else `c`.
uptier_value uptier_build_select(uptier_builder* b, uptier_value condition, uptier_value a,
                                 uptier_value c) UPTIER_NOEXCEPT;

// The address of a memory access: base + zero_extend(index) + offset.
typedef struct uptier_address {
  uptier_value base;   // ref or i64
  uptier_value index;  // i64, i32 (zero-extended), or none
  uint32_t offset;     // bytes
  uint32_t flags;      // UPTIER_MEM_*
} uptier_address;

// Plain accesses that need no alignment: see FunctionBuilder::load.
uptier_value uptier_build_load(uptier_builder* b, uptier_opcode op, uptier_type type,
                               uptier_address at) UPTIER_NOEXCEPT;
uptier_status uptier_build_store(uptier_builder* b, uptier_opcode op, uptier_value v,
                                 uptier_address at) UPTIER_NOEXCEPT;

// ---- Calls ------------------------------------------------------------------------------------

// Calls. They return none if the signature has no result (which is no error). `args` may be NULL if
// `count` is 0; `count` must be the number of parameters of the signature.

// Calls a method of the same runtime, in the best code that it has at the time of the call. `args`
// must fit the signature that it was registered with.
uptier_value uptier_build_call(uptier_builder* b, uptier_method callee, const uptier_value* args,
                               size_t count) UPTIER_NOEXCEPT;
// Calls the code that `target` (ref) points to: an entry, or a C function. `flags`: 0 or
// UPTIER_CALL_MAY_TRAP, if it may be a C function that calls uptier_raise.
uptier_value uptier_build_call_indirect(uptier_builder* b, uptier_value target,
                                        uptier_signature signature, const uptier_value* args,
                                        size_t count, uint32_t flags) UPTIER_NOEXCEPT;
// Calls a C function that has exactly `signature`. It must not unwind (no exception, no longjmp);
// `name` appears in the text form. `flags`: 0 or UPTIER_CALL_MAY_TRAP, if it may call uptier_raise.
uptier_value uptier_build_call_host(uptier_builder* b, const char* name, uptier_code function,
                                    uptier_signature signature, const uptier_value* args,
                                    size_t count, uint32_t flags) UPTIER_NOEXCEPT;

// ---- Control: each but trap_if ends the current block -------------------------------------------

uptier_status uptier_build_jump(uptier_builder* b, uptier_block to) UPTIER_NOEXCEPT;
uptier_status uptier_build_branch(uptier_builder* b, uptier_value condition, uptier_block if_true,
                                  uptier_block if_false) UPTIER_NOEXCEPT;
// Goes to cases[index], or to `otherwise` when index (i32, unsigned) is past the end.
uptier_status uptier_build_switch(uptier_builder* b, uptier_value index, const uptier_block* cases,
                                  size_t count, uptier_block otherwise) UPTIER_NOEXCEPT;
// Returns `v`; none for a method without result.
uptier_status uptier_build_ret(uptier_builder* b, uptier_value v) UPTIER_NOEXCEPT;
uptier_status uptier_build_trap(uptier_builder* b, uptier_trap code) UPTIER_NOEXCEPT;
// Traps when `condition` (i32) is not 0; the block goes on.
uptier_status uptier_build_trap_if(uptier_builder* b, uptier_value condition,
                                   uptier_trap code) UPTIER_NOEXCEPT;

// ---- Observation and speculation ----------------------------------------------------------------

// Marks the current block, which must be empty and unsealed, as a loop header. The runtime may
// change copies and tiers here. `slots` are the interpreter's variables at `pc`, for
// uptier_runtime_osr_enter; pass 0 slots if the host has none. Returns the loop, from 1 in build
// order. Blocks that no path reaches are removed when the body ends, and then later loops have
// lower ids.
uptier_loop uptier_build_loop_header(uptier_builder* b, uint32_t pc, const uptier_variable* slots,
                                     size_t count) UPTIER_NOEXCEPT;
// Gives each variable a value of its own, distinct from constants, arguments and the values of
// other variables.
//
// For hosts whose interpreter enters loops (uptier_runtime_osr_enter): call it with the slots of
// each loop header, right before the jump that enters the loop from outside. The reason is at
// FunctionBuilder::make_own. Cost: one instruction per variable, outside of the loop.
uptier_status uptier_build_make_own(uptier_builder* b, const uptier_variable* variables,
                                    size_t count) UPTIER_NOEXCEPT;
// Declares the host's frame at `pc`. Guards after it in its block deoptimize to this frame. The
// interpreter repeats the instruction at `pc`, so there must be no store and no call, host calls
// included, between the frame state and a guard.
uptier_status uptier_build_frame_state(uptier_builder* b, uint32_t pc, const uptier_value* slots,
                                       size_t count) UPTIER_NOEXCEPT;
// Continues if `condition` (i32) is not 0, else leaves to the host's frame.
uptier_status uptier_build_guard(uptier_builder* b, uptier_value condition,
                                 uptier_guard_reason reason) UPTIER_NOEXCEPT;
// Always leaves to the host's frame, and ends the block.
uptier_status uptier_build_leave(uptier_builder* b, uptier_guard_reason reason) UPTIER_NOEXCEPT;
// Observes `v` at a site of the host's own. uptier_probe_kind says which kinds take which values.
//
//   v      may be none for UPTIER_PROBE_HIT
//   tag    goes into the records of a UPTIER_PROBE_LOG; 0 for the others
//   index  receives the probe's number among the host's sites, from 0 in build order; may be NULL
uptier_status uptier_build_probe(uptier_builder* b, uptier_probe_kind kind, uptier_value v,
                                 uint32_t tag, uint32_t* index) UPTIER_NOEXCEPT;
// Returns, as an i64, the count that a counter, hit or gauge probe of the same body has reached
// (`probe`: the `index` of uptier_build_probe), as far as the compiler knows. In optimized code it
// is a constant; in all other code, and if nothing is known, it is 0. The body must be correct for
// any number: see FunctionBuilder::known_count.
uptier_value uptier_build_known_count(uptier_builder* b, uint32_t probe) UPTIER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
