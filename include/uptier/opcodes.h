// opcodes.h: the one opcode table.
//
// Printer, parser, verifier, reference interpreter and both compilers derive from UPTIER_OPCODES. A
// row says everything that does not depend on a machine: name, text, shape of operands, the
// controlling types it exists for, and its effects. Semantics are WebAssembly's to the bit where
// WebAssembly has the operation (wrapping, shift counts modulo the width, NaN propagation, traps).
//
//   X(id, text, shape, types, effects)
//
// Text is `text.type operands`; `type` is the controlling type, see Shape.
#pragma once

#include <cstdint>

#include "uptier/ids.h"

namespace uptier {

// How operands and the controlling type T (written after the dot) make an instruction.
enum class Shape : uint8_t {
  kConst,         // imm -> T                     imm holds the bits of the value, zero-extended
  kUnary,         // T -> T
  kBinary,        // T, T -> T
  kCompare,       // T, T -> i32                  1 or 0
  kTest,          // T -> i32
  kConvert,       // S -> T                       S is the type of the operand
  kSelect,        // i32, T, T -> T               second operand when the first is not 0
  kLoad,          // address -> T                 see "Addresses" below
  kStore,         // T, address
  kCall,          // args -> result of signature  aux: SignatureId, imm: index into callees
  kCallIndirect,  // ref, args -> result          aux: SignatureId
  kCallHost,      // args -> result               aux: SignatureId, imm: index into host functions
  kJump,          // -> one edge
  kBranch,        // i32 -> edge taken when not 0, edge taken when 0
  kSwitch,        // i32 -> edges 0..n-2 by index, the last edge otherwise
  kReturn,        // value of the function's result type, or nothing
  kTrap,          // aux: TrapCode
  kTrapIf,        // i32; aux: TrapCode           traps when the operand is not 0
  kLoopHeader,    // slots...; aux: LoopId, imm: host pc
  kProbe,         // optional value; aux: site, imm: ProbeKind, its tag 32 bits up
  kFrameState,    // slots...; aux: inline depth, imm: host pc
  kGuard,         // i32; aux: GuardReason        deopts to the last frame_state when 0
};

// Addresses: one operand (`base`: ref or i64), or two (`base`, then `index`: an i64, or an i32 that
// is zero-extended), plus the unsigned 32-bit constant in `imm`. The sum is a host address.

// Which controlling types a row exists for.
enum TypeMask : uint8_t {
  kMaskNone = 1,
  kMaskI32 = 2,
  kMaskI64 = 4,
  kMaskF32 = 8,
  kMaskF64 = 16,
  kMaskRef = 32,
  kMaskInt = kMaskI32 | kMaskI64,
  kMaskFloat = kMaskF32 | kMaskF64,
  kMaskNum = kMaskInt | kMaskFloat,
  kMaskAny = kMaskNum | kMaskRef,
};

// What an instruction may do besides computing its result.
enum Effect : uint8_t {
  kPure = 0,       // same operands, same result: may be merged, moved, deleted
  kCanTrap = 1,    // may end the call with a trap: never deleted, never hoisted above a guard
  kReads = 2,      // reads memory
  kWrites = 4,     // writes memory or has another side effect
  kEndsBlock = 8,  // a terminator
  kCommutes = 16,  // operands may be swapped
  kPinned = 32,    // stays where it is, though it computes nothing (probe, loop_header, ...)
};

// clang-format off
#define UPTIER_OPCODES(X)                                                                        \
  X(kConst,        "const",         kConst,        kMaskAny,   kPure)                            \
  /* integer arithmetic */                                                                       \
  X(kAdd,          "add",           kBinary,       kMaskInt,   kCommutes)                        \
  X(kSub,          "sub",           kBinary,       kMaskInt,   kPure)                            \
  X(kMul,          "mul",           kBinary,       kMaskInt,   kCommutes)                        \
  X(kDivS,         "div_s",         kBinary,       kMaskInt,   kCanTrap)                         \
  X(kDivU,         "div_u",         kBinary,       kMaskInt,   kCanTrap)                         \
  X(kRemS,         "rem_s",         kBinary,       kMaskInt,   kCanTrap)                         \
  X(kRemU,         "rem_u",         kBinary,       kMaskInt,   kCanTrap)                         \
  X(kAnd,          "and",           kBinary,       kMaskInt,   kCommutes)                        \
  X(kOr,           "or",            kBinary,       kMaskInt,   kCommutes)                        \
  X(kXor,          "xor",           kBinary,       kMaskInt,   kCommutes)                        \
  X(kShl,          "shl",           kBinary,       kMaskInt,   kPure)                            \
  X(kShrS,         "shr_s",         kBinary,       kMaskInt,   kPure)                            \
  X(kShrU,         "shr_u",         kBinary,       kMaskInt,   kPure)                            \
  X(kRotl,         "rotl",          kBinary,       kMaskInt,   kPure)                            \
  X(kRotr,         "rotr",          kBinary,       kMaskInt,   kPure)                            \
  X(kClz,          "clz",           kUnary,        kMaskInt,   kPure)                            \
  X(kCtz,          "ctz",           kUnary,        kMaskInt,   kPure)                            \
  X(kPopcnt,       "popcnt",        kUnary,        kMaskInt,   kPure)                            \
  X(kSext8,        "sext8",         kUnary,        kMaskInt,   kPure)                            \
  X(kSext16,       "sext16",        kUnary,        kMaskInt,   kPure)                            \
  X(kSext32,       "sext32",        kUnary,        kMaskI64,   kPure)                            \
  /* overflow: 1 when the signed result of add, sub, mul does not fit; or trap integer_overflow */ \
  X(kAddOverflows, "add_overflows", kCompare,      kMaskInt,   kCommutes)                        \
  X(kSubOverflows, "sub_overflows", kCompare,      kMaskInt,   kPure)                            \
  X(kMulOverflows, "mul_overflows", kCompare,      kMaskInt,   kCommutes)                        \
  X(kAddTrap,      "add_trap",      kBinary,       kMaskInt,   kCanTrap | kCommutes)             \
  X(kSubTrap,      "sub_trap",      kBinary,       kMaskInt,   kCanTrap)                         \
  X(kMulTrap,      "mul_trap",      kBinary,       kMaskInt,   kCanTrap | kCommutes)             \
  /* integer comparison */                                                                       \
  X(kEqz,          "eqz",           kTest,         kMaskInt | kMaskRef, kPure)                   \
  X(kEq,           "eq",            kCompare,      kMaskInt | kMaskRef, kCommutes)               \
  X(kNe,           "ne",            kCompare,      kMaskInt | kMaskRef, kCommutes)               \
  X(kLtS,          "lt_s",          kCompare,      kMaskInt,   kPure)                            \
  X(kLtU,          "lt_u",          kCompare,      kMaskInt,   kPure)                            \
  X(kGtS,          "gt_s",          kCompare,      kMaskInt,   kPure)                            \
  X(kGtU,          "gt_u",          kCompare,      kMaskInt,   kPure)                            \
  X(kLeS,          "le_s",          kCompare,      kMaskInt,   kPure)                            \
  X(kLeU,          "le_u",          kCompare,      kMaskInt,   kPure)                            \
  X(kGeS,          "ge_s",          kCompare,      kMaskInt,   kPure)                            \
  X(kGeU,          "ge_u",          kCompare,      kMaskInt,   kPure)                            \
  /* float arithmetic and comparison */                                                          \
  X(kFAdd,         "fadd",          kBinary,       kMaskFloat, kPure)                            \
  X(kFSub,         "fsub",          kBinary,       kMaskFloat, kPure)                            \
  X(kFMul,         "fmul",          kBinary,       kMaskFloat, kPure)                            \
  X(kFDiv,         "fdiv",          kBinary,       kMaskFloat, kPure)                            \
  X(kFMin,         "fmin",          kBinary,       kMaskFloat, kPure)                            \
  X(kFMax,         "fmax",          kBinary,       kMaskFloat, kPure)                            \
  X(kFCopysign,    "fcopysign",     kBinary,       kMaskFloat, kPure)                            \
  X(kFAbs,         "fabs",          kUnary,        kMaskFloat, kPure)                            \
  X(kFNeg,         "fneg",          kUnary,        kMaskFloat, kPure)                            \
  X(kFSqrt,        "fsqrt",         kUnary,        kMaskFloat, kPure)                            \
  X(kFCeil,        "fceil",         kUnary,        kMaskFloat, kPure)                            \
  X(kFFloor,       "ffloor",        kUnary,        kMaskFloat, kPure)                            \
  X(kFTrunc,       "ftrunc",        kUnary,        kMaskFloat, kPure)                            \
  X(kFNearest,     "fnearest",      kUnary,        kMaskFloat, kPure)                            \
  X(kFEq,          "feq",           kCompare,      kMaskFloat, kPure)                            \
  X(kFNe,          "fne",           kCompare,      kMaskFloat, kPure)                            \
  X(kFLt,          "flt",           kCompare,      kMaskFloat, kPure)                            \
  X(kFGt,          "fgt",           kCompare,      kMaskFloat, kPure)                            \
  X(kFLe,          "fle",           kCompare,      kMaskFloat, kPure)                            \
  X(kFGe,          "fge",           kCompare,      kMaskFloat, kPure)                            \
  /* conversion; the operand's type in parentheses */                                            \
  X(kWrap,         "wrap",          kConvert,      kMaskI32,   kPure)      /* (i64) */           \
  X(kExtendS,      "extend_s",      kConvert,      kMaskI64,   kPure)      /* (i32) */           \
  X(kExtendU,      "extend_u",      kConvert,      kMaskI64,   kPure)      /* (i32) */           \
  X(kTruncS,       "trunc_s",       kConvert,      kMaskInt,   kCanTrap)   /* (f32, f64) */      \
  X(kTruncU,       "trunc_u",       kConvert,      kMaskInt,   kCanTrap)   /* (f32, f64) */      \
  X(kTruncSatS,    "trunc_sat_s",   kConvert,      kMaskInt,   kPure)      /* (f32, f64) */      \
  X(kTruncSatU,    "trunc_sat_u",   kConvert,      kMaskInt,   kPure)      /* (f32, f64) */      \
  X(kConvertS,     "convert_s",     kConvert,      kMaskFloat, kPure)      /* (i32, i64) */      \
  X(kConvertU,     "convert_u",     kConvert,      kMaskFloat, kPure)      /* (i32, i64) */      \
  X(kPromote,      "promote",       kConvert,      kMaskF64,   kPure)      /* (f32) */           \
  X(kDemote,       "demote",        kConvert,      kMaskF32,   kPure)      /* (f64) */           \
  X(kBitcast,      "bitcast",       kConvert,      kMaskAny,   kPure)      /* (same width) */    \
  /* memory; a fault at the address traps when MemFlags::kMemTraps is set */                     \
  X(kLoad,         "load",          kLoad,         kMaskAny,   kReads | kCanTrap)                \
  X(kLoad8S,       "load8_s",       kLoad,         kMaskInt,   kReads | kCanTrap)                \
  X(kLoad8U,       "load8_u",       kLoad,         kMaskInt,   kReads | kCanTrap)                \
  X(kLoad16S,      "load16_s",      kLoad,         kMaskInt,   kReads | kCanTrap)                \
  X(kLoad16U,      "load16_u",      kLoad,         kMaskInt,   kReads | kCanTrap)                \
  X(kLoad32S,      "load32_s",      kLoad,         kMaskI64,   kReads | kCanTrap)                \
  X(kLoad32U,      "load32_u",      kLoad,         kMaskI64,   kReads | kCanTrap)                \
  X(kStore,        "store",         kStore,        kMaskAny,   kWrites | kCanTrap)               \
  X(kStore8,       "store8",        kStore,        kMaskInt,   kWrites | kCanTrap)               \
  X(kStore16,      "store16",       kStore,        kMaskInt,   kWrites | kCanTrap)               \
  X(kStore32,      "store32",       kStore,        kMaskI64,   kWrites | kCanTrap)               \
  X(kSelect,       "select",        kSelect,       kMaskAny,   kPure)                            \
  /* calls; the controlling type is the signature's result */                                    \
  X(kCall,         "call",          kCall,         kMaskAny | kMaskNone, kReads | kWrites | kCanTrap) \
  X(kCallIndirect, "call_indirect", kCallIndirect, kMaskAny | kMaskNone, kReads | kWrites | kCanTrap) \
  X(kCallHost,     "call_host",     kCallHost,     kMaskAny | kMaskNone, kReads | kWrites | kCanTrap) \
  /* control */                                                                                  \
  X(kJump,         "jump",          kJump,         kMaskNone,  kEndsBlock)                       \
  X(kBranch,       "branch",        kBranch,       kMaskNone,  kEndsBlock)                       \
  X(kSwitch,       "switch",        kSwitch,       kMaskNone,  kEndsBlock)                       \
  X(kReturn,       "return",        kReturn,       kMaskNone,  kEndsBlock)                       \
  X(kTrap,         "trap",          kTrap,         kMaskNone,  kEndsBlock | kCanTrap)            \
  X(kTrapIf,       "trap_if",       kTrapIf,       kMaskNone,  kCanTrap | kPinned)               \
  /* observation and speculation */                                                              \
  X(kLoopHeader,   "loop_header",   kLoopHeader,   kMaskNone,  kPinned)                          \
  X(kProbe,        "probe",         kProbe,        kMaskNone,  kPinned)                          \
  X(kFrameState,   "frame_state",   kFrameState,   kMaskNone,  kPinned)                          \
  X(kGuard,        "guard",         kGuard,        kMaskNone,  kPinned | kCanTrap)
// clang-format on

enum class Opcode : uint8_t {
#define X(id, text, shape, types, effects) id,
  UPTIER_OPCODES(X)
#undef X
};

struct OpcodeInfo {
  const char* text;
  Shape shape;
  uint8_t types;    // TypeMask
  uint8_t effects;  // Effect
};

// Returns the row of the table. Constant time.
const OpcodeInfo& info(Opcode op);

inline constexpr unsigned kOpcodeCount = 0
#define X(id, text, shape, types, effects) +1
    UPTIER_OPCODES(X)
#undef X
    ;

// Flags of loads, stores and host calls.
enum MemFlags : uint8_t {
  kMemNone = 0,
  kMemTraps = 1,      // a fault at this address is a trap out_of_bounds_memory
  kMemInvariant = 2,  // load: the place never changes while the function runs; cannot fault
  kCallMayTrap = 4,   // call_host: the callee may have raised a trap; checked after it returns
};

// Why a call ended without a result. Printed as the text that WebAssembly's tests use.
#define UPTIER_TRAPS(X)                                   \
  X(kNone, "none")                                        \
  X(kUnreachable, "unreachable")                          \
  X(kDivideByZero, "integer divide by zero")              \
  X(kIntegerOverflow, "integer overflow")                 \
  X(kInvalidConversion, "invalid conversion to integer")  \
  X(kOutOfBoundsMemory, "out of bounds memory access")    \
  X(kOutOfBoundsTable, "out of bounds table access")      \
  X(kUndefinedElement, "undefined element")               \
  X(kUninitializedElement, "uninitialized element")       \
  X(kIndirectTypeMismatch, "indirect call type mismatch") \
  X(kStackExhausted, "call stack exhausted")              \
  X(kGuardFailed, "guard failed")                         \
  X(kHost, "trap raised by the host")                     \
  X(kExit, "program exit")

enum class TrapCode : uint8_t {
#define X(id, text) id,
  UPTIER_TRAPS(X)
#undef X
};
const char* trap_text(TrapCode code);

// Why a guard was placed; counted per (site, reason) across recompilations.
#define UPTIER_GUARD_REASONS(X) \
  X(kType, "type")              \
  X(kOverflow, "overflow")      \
  X(kBounds, "bounds")          \
  X(kTarget, "target")          \
  X(kValue, "value")            \
  X(kUnreached, "unreached")    \
  X(kUser, "user")

enum class GuardReason : uint8_t {
#define X(id, text) id,
  UPTIER_GUARD_REASONS(X)
#undef X
};
const char* guard_reason_name(GuardReason reason);

// What a probe observes. Only block probes are placed by the library itself; edges, loops and the
// targets of call_indirect are observed without a probe of their own. What a host may ask for, and
// the values it takes:
//
//   kCallTarget  ref or i64   a code address (of a stub) or a handle; counted by target
//   kValue       any          counted by value; also the sum, the least and the greatest
//   kLog         any          one record a visit, with the probe's tag, in a ring of the thread
//   kCounter     i32 or i64   added to one word
//   kHit         none, any    adds 1; a value is ignored
//   kGauge       any          the last one stays
//   kRange       i32 or i64   number, sum, least and greatest
//
// A value is seen as 64 bits, signed: an i32 is sign-extended, an f32 becomes a double, and a double
// and a ref are their bits.
enum class ProbeKind : uint8_t {
  kBlock = 1,
  kEdge,
  kCallTarget,
  kValue,
  kLoop,
  kLog,
  kCounter,
  kHit,
  kGauge,
  kRange,
};
inline constexpr ProbeKind kLastProbeKind = ProbeKind::kRange;
const char* probe_kind_name(ProbeKind kind);

}  // namespace uptier
