// c_builder.h: how a C embedder describes a method's body; part of uptier.h.
//
// SSA by variables: the embedder defines and uses variables and never writes a phi. A block's
// protocol:
//
//   create_block -> [jumps to it] -> switch_to -> instructions -> one terminator
//   seal once every predecessor has been added; a loop header is sealed after its back edges
//
// Errors are sticky. The first call that breaks a rule makes the builder remember its message; that
// call and all later ones do nothing and return none (id 0) or the error's status. The build then
// fails with that message whatever the callback returns, so a body need not look at any status, and
// calls nest:
//
//   uptier_build_def(b, i, uptier_build_binary(b, UPTIER_OP_ADD, uptier_build_use(b, i), one));
//
// What only the whole body shows (types of operands, dominance, blocks without an end) is found by
// the verifier after the callback, with a message as well.
//
//   Ownership: a builder is the library's and lives for one call of the `build` callback, as do the
//              ids that it returns. Arrays and names passed to it are copied.
//   Thread:    the one that the callback runs on.
//   Errors:    UPTIER_INVALID_ARGUMENT for a NULL builder (which cannot remember it), ids that are
//              out of range in this builder, an operation of another shape, an instruction outside
//              a block. Nothing aborts.
//   Cost:      constant, except `use` (walks predecessors once) and calls (copy their arguments).
#pragma once

#include "uptier/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uptier_builder uptier_builder;

// Returns the first error so far, UPTIER_OK when there is none. `error` may be NULL.
uptier_status uptier_build_status(const uptier_builder* b, uptier_error* error) UPTIER_NOEXCEPT;

// ---- Parameters, blocks, variables ------------------------------------------------------------

// Returns parameter `index` (from 0) of the method, a value of the entry block.
uptier_value uptier_build_param(uptier_builder* b, size_t index) UPTIER_NOEXCEPT;
// Returns the type of a value; UPTIER_TYPE_NONE on error.
uptier_type uptier_build_type_of(uptier_builder* b, uptier_value v) UPTIER_NOEXCEPT;

// Blocks. The entry block exists, is sealed and is current at the start.
uptier_block uptier_build_create_block(uptier_builder* b) UPTIER_NOEXCEPT;
// Makes a block current; the one before must have ended, and each block is filled once. The order
// of these calls is the build order from which site ids come.
uptier_status uptier_build_switch_to(uptier_builder* b, uptier_block block) UPTIER_NOEXCEPT;
// Says that all jumps to the block have been made. Once per block.
uptier_status uptier_build_seal(uptier_builder* b, uptier_block block) UPTIER_NOEXCEPT;
// Returns the block that instructions go to; none after a terminator (which is no error).
uptier_block uptier_build_current(const uptier_builder* b) UPTIER_NOEXCEPT;

// Variables. One that is used before it is defined is 0.
uptier_variable uptier_build_declare(uptier_builder* b, uptier_type type) UPTIER_NOEXCEPT;
uptier_status uptier_build_def(uptier_builder* b, uptier_variable x,
                               uptier_value v) UPTIER_NOEXCEPT;  // same type
uptier_value uptier_build_use(uptier_builder* b, uptier_variable x) UPTIER_NOEXCEPT;

// Sets the source location (host's own unit, e.g. a bytecode offset) of what follows.
uptier_status uptier_build_set_location(uptier_builder* b, uint32_t location) UPTIER_NOEXCEPT;

// ---- Constants and operations -----------------------------------------------------------------

uptier_value uptier_build_i32(uptier_builder* b, int32_t v) UPTIER_NOEXCEPT;
uptier_value uptier_build_i64(uptier_builder* b, int64_t v) UPTIER_NOEXCEPT;
uptier_value uptier_build_f32(uptier_builder* b, float v) UPTIER_NOEXCEPT;
uptier_value uptier_build_f64(uptier_builder* b, double v) UPTIER_NOEXCEPT;
uptier_value uptier_build_ref(uptier_builder* b, const void* p) UPTIER_NOEXCEPT;
// A constant by its bits; those above the type's width must be 0.
uptier_value uptier_build_constant(uptier_builder* b, uptier_type type,
                                   uint64_t bits) UPTIER_NOEXCEPT;

// Operations; types come from the operands. Which operation has which shape and types is said by
// the rows of opcode_table.h: kUnary and kTest; kBinary and kCompare; kConvert; kLoad; kStore.
uptier_value uptier_build_unary(uptier_builder* b, uptier_opcode op,
                                uptier_value a) UPTIER_NOEXCEPT;
uptier_value uptier_build_binary(uptier_builder* b, uptier_opcode op, uptier_value a,
                                 uptier_value c) UPTIER_NOEXCEPT;
uptier_value uptier_build_convert(uptier_builder* b, uptier_opcode op, uptier_type to,
                                  uptier_value a) UPTIER_NOEXCEPT;
// Returns `a` when `condition` (i32) is not 0, else `c`.
uptier_value uptier_build_select(uptier_builder* b, uptier_value condition, uptier_value a,
                                 uptier_value c) UPTIER_NOEXCEPT;

// Where an access goes: base + zero_extend(index) + offset.
typedef struct uptier_address {
  uptier_value base;   // ref or i64
  uptier_value index;  // i64, i32 (zero-extended), or none
  uint32_t offset;     // bytes
  uint32_t flags;      // UPTIER_MEM_*
} uptier_address;

uptier_value uptier_build_load(uptier_builder* b, uptier_opcode op, uptier_type type,
                               uptier_address at) UPTIER_NOEXCEPT;
uptier_status uptier_build_store(uptier_builder* b, uptier_opcode op, uptier_value v,
                                 uptier_address at) UPTIER_NOEXCEPT;

// ---- Calls ------------------------------------------------------------------------------------

// Calls return none, which is no error, when the signature has no result. `args` may be NULL when
// `count` is 0; `count` must be the signature's number of parameters.

// Calls a method of the same runtime, with the signature it was registered with, through its stub:
// it always runs the best code there is.
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

// Marks the current block, which must be empty and unsealed, as the header of a loop: the runtime
// may change copies and tiers here. `slots` is the host's frame at `pc`; 0 of them when the host
// never takes frames back.
uptier_loop uptier_build_loop_header(uptier_builder* b, uint32_t pc, const uptier_variable* slots,
                                     size_t count) UPTIER_NOEXCEPT;
// Gives each variable a value of its own, which is no constant, argument or other variable's value.
// For hosts whose interpreter enters loops (uptier_runtime_osr_enter): with the slots of each loop
// header, right before the jump that comes to it from outside. Code takes for granted what the
// description says of a slot, and the interpreter may have come by a way that the description leaves
// out (behind a guard or uptier_build_leave), on which a variable that is constant here was assigned.
// Cost: an instruction a variable, outside of the loop.
uptier_status uptier_build_make_own(uptier_builder* b, const uptier_variable* variables,
                                    size_t count) UPTIER_NOEXCEPT;
// Declares the host's frame at `pc`, to which guards behind it in its block leave. The interpreter
// repeats what is at `pc`, so nothing visible may have happened since: no store and no call, host
// calls included, stands between it and a guard.
uptier_status uptier_build_frame_state(uptier_builder* b, uint32_t pc, const uptier_value* slots,
                                       size_t count) UPTIER_NOEXCEPT;
// Continues when `condition` (i32) is not 0, else leaves to the host's frame.
uptier_status uptier_build_guard(uptier_builder* b, uptier_value condition,
                                 uptier_guard_reason reason) UPTIER_NOEXCEPT;
// Leaves to the host's frame whenever control comes here, and ends the block.
uptier_status uptier_build_leave(uptier_builder* b, uptier_guard_reason reason) UPTIER_NOEXCEPT;
// Observes `v` at a site of the host's own; which kinds take which values: see uptier_probe_kind.
//
//   v      may be none for UPTIER_PROBE_HIT
//   tag    goes into the records of a UPTIER_PROBE_LOG; 0 for the others
//   index  receives the probe's number among the host's sites, from 0 in build order; may be NULL
uptier_status uptier_build_probe(uptier_builder* b, uptier_probe_kind kind, uptier_value v,
                                 uint32_t tag, uint32_t* index) UPTIER_NOEXCEPT;
// Returns, as an i64, what the counter, hit or gauge with this `index` in the same body has come to,
// as far as the compiler knows: a constant in optimized code, and 0 in all other and where nothing is
// known. The body must be right whatever the number is: see FunctionBuilder::known_count.
uptier_value uptier_build_known_count(uptier_builder* b, uint32_t probe) UPTIER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
