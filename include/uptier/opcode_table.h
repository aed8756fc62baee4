// opcode_table.h: the rows of the opcode, trap, guard reason and probe kind tables.
//
// Macros and nothing else, so that opcodes.h (C++) and c_types.h (C99) make their enumerations of
// the same rows and cannot differ. Include one of those; opcodes.h explains the columns.
#pragma once

// clang-format off
//   X(id, name, text, shape, types, effects)         C: UPTIER_OP_<name>
#define UPTIER_OPCODES(X)                                                                                               \
  X(kConst,         CONST,          "const",          kConst,        kMaskAny,   kPure)                                 \
  /* integer arithmetic */                                                                                              \
  X(kAdd,           ADD,            "add",            kBinary,       kMaskInt,   kCommutes)                             \
  X(kSub,           SUB,            "sub",            kBinary,       kMaskInt,   kPure)                                 \
  X(kMul,           MUL,            "mul",            kBinary,       kMaskInt,   kCommutes)                             \
  /* the upper half of the product of twice the width */                                                                \
  X(kMulHighS,      MUL_HIGH_S,     "mul_high_s",     kBinary,       kMaskInt,   kCommutes)                             \
  X(kMulHighU,      MUL_HIGH_U,     "mul_high_u",     kBinary,       kMaskInt,   kCommutes)                             \
  X(kDivS,          DIV_S,          "div_s",          kBinary,       kMaskInt,   kCanTrap)                              \
  X(kDivU,          DIV_U,          "div_u",          kBinary,       kMaskInt,   kCanTrap)                              \
  X(kRemS,          REM_S,          "rem_s",          kBinary,       kMaskInt,   kCanTrap)                              \
  X(kRemU,          REM_U,          "rem_u",          kBinary,       kMaskInt,   kCanTrap)                              \
  X(kAnd,           AND,            "and",            kBinary,       kMaskInt,   kCommutes)                             \
  X(kOr,            OR,             "or",             kBinary,       kMaskInt,   kCommutes)                             \
  X(kXor,           XOR,            "xor",            kBinary,       kMaskInt,   kCommutes)                             \
  X(kShl,           SHL,            "shl",            kBinary,       kMaskInt,   kPure)                                 \
  X(kShrS,          SHR_S,          "shr_s",          kBinary,       kMaskInt,   kPure)                                 \
  X(kShrU,          SHR_U,          "shr_u",          kBinary,       kMaskInt,   kPure)                                 \
  X(kRotl,          ROTL,           "rotl",           kBinary,       kMaskInt,   kPure)                                 \
  X(kRotr,          ROTR,           "rotr",           kBinary,       kMaskInt,   kPure)                                 \
  X(kClz,           CLZ,            "clz",            kUnary,        kMaskInt,   kPure)                                 \
  X(kCtz,           CTZ,            "ctz",            kUnary,        kMaskInt,   kPure)                                 \
  X(kPopcnt,        POPCNT,         "popcnt",         kUnary,        kMaskInt,   kPure)                                 \
  X(kSext8,         SEXT8,          "sext8",          kUnary,        kMaskInt,   kPure)                                 \
  X(kSext16,        SEXT16,         "sext16",         kUnary,        kMaskInt,   kPure)                                 \
  X(kSext32,        SEXT32,         "sext32",         kUnary,        kMaskI64,   kPure)                                 \
  /* *_overflows: 1 if the signed result does not fit, else 0; *_trap: the result, or trap integer_overflow */          \
  X(kAddOverflows,  ADD_OVERFLOWS,  "add_overflows",  kCompare,      kMaskInt,   kCommutes)                             \
  X(kSubOverflows,  SUB_OVERFLOWS,  "sub_overflows",  kCompare,      kMaskInt,   kPure)                                 \
  X(kMulOverflows,  MUL_OVERFLOWS,  "mul_overflows",  kCompare,      kMaskInt,   kCommutes)                             \
  X(kAddTrap,       ADD_TRAP,       "add_trap",       kBinary,       kMaskInt,   kCanTrap | kCommutes)                  \
  X(kSubTrap,       SUB_TRAP,       "sub_trap",       kBinary,       kMaskInt,   kCanTrap)                              \
  X(kMulTrap,       MUL_TRAP,       "mul_trap",       kBinary,       kMaskInt,   kCanTrap | kCommutes)                  \
  /* integer comparison */                                                                                              \
  X(kEqz,           EQZ,            "eqz",            kTest,         kMaskInt | kMaskRef, kPure)                        \
  X(kEq,            EQ,             "eq",             kCompare,      kMaskInt | kMaskRef, kCommutes)                    \
  X(kNe,            NE,             "ne",             kCompare,      kMaskInt | kMaskRef, kCommutes)                    \
  X(kLtS,           LT_S,           "lt_s",           kCompare,      kMaskInt,   kPure)                                 \
  X(kLtU,           LT_U,           "lt_u",           kCompare,      kMaskInt,   kPure)                                 \
  X(kGtS,           GT_S,           "gt_s",           kCompare,      kMaskInt,   kPure)                                 \
  X(kGtU,           GT_U,           "gt_u",           kCompare,      kMaskInt,   kPure)                                 \
  X(kLeS,           LE_S,           "le_s",           kCompare,      kMaskInt,   kPure)                                 \
  X(kLeU,           LE_U,           "le_u",           kCompare,      kMaskInt,   kPure)                                 \
  X(kGeS,           GE_S,           "ge_s",           kCompare,      kMaskInt,   kPure)                                 \
  X(kGeU,           GE_U,           "ge_u",           kCompare,      kMaskInt,   kPure)                                 \
  /* float arithmetic and comparison */                                                                                 \
  X(kFAdd,          FADD,           "fadd",           kBinary,       kMaskFloat, kPure)                                 \
  X(kFSub,          FSUB,           "fsub",           kBinary,       kMaskFloat, kPure)                                 \
  X(kFMul,          FMUL,           "fmul",           kBinary,       kMaskFloat, kPure)                                 \
  X(kFDiv,          FDIV,           "fdiv",           kBinary,       kMaskFloat, kPure)                                 \
  X(kFMin,          FMIN,           "fmin",           kBinary,       kMaskFloat, kPure)                                 \
  X(kFMax,          FMAX,           "fmax",           kBinary,       kMaskFloat, kPure)                                 \
  X(kFCopysign,     FCOPYSIGN,      "fcopysign",      kBinary,       kMaskFloat, kPure)                                 \
  X(kFAbs,          FABS,           "fabs",           kUnary,        kMaskFloat, kPure)                                 \
  X(kFNeg,          FNEG,           "fneg",           kUnary,        kMaskFloat, kPure)                                 \
  X(kFSqrt,         FSQRT,          "fsqrt",          kUnary,        kMaskFloat, kPure)                                 \
  X(kFCeil,         FCEIL,          "fceil",          kUnary,        kMaskFloat, kPure)                                 \
  X(kFFloor,        FFLOOR,         "ffloor",         kUnary,        kMaskFloat, kPure)                                 \
  X(kFTrunc,        FTRUNC,         "ftrunc",         kUnary,        kMaskFloat, kPure)                                 \
  X(kFNearest,      FNEAREST,       "fnearest",       kUnary,        kMaskFloat, kPure)                                 \
  X(kFEq,           FEQ,            "feq",            kCompare,      kMaskFloat, kPure)                                 \
  X(kFNe,           FNE,            "fne",            kCompare,      kMaskFloat, kPure)                                 \
  X(kFLt,           FLT,            "flt",            kCompare,      kMaskFloat, kPure)                                 \
  X(kFGt,           FGT,            "fgt",            kCompare,      kMaskFloat, kPure)                                 \
  X(kFLe,           FLE,            "fle",            kCompare,      kMaskFloat, kPure)                                 \
  X(kFGe,           FGE,            "fge",            kCompare,      kMaskFloat, kPure)                                 \
  /* conversion; the operand's type in parentheses */                                                                   \
  X(kWrap,          WRAP,           "wrap",           kConvert,      kMaskI32,   kPure)  /* (i64) */                    \
  X(kExtendS,       EXTEND_S,       "extend_s",       kConvert,      kMaskI64,   kPure)  /* (i32) */                    \
  X(kExtendU,       EXTEND_U,       "extend_u",       kConvert,      kMaskI64,   kPure)  /* (i32) */                    \
  X(kTruncS,        TRUNC_S,        "trunc_s",        kConvert,      kMaskInt,   kCanTrap)  /* (f32, f64) */            \
  X(kTruncU,        TRUNC_U,        "trunc_u",        kConvert,      kMaskInt,   kCanTrap)  /* (f32, f64) */            \
  X(kTruncSatS,     TRUNC_SAT_S,    "trunc_sat_s",    kConvert,      kMaskInt,   kPure)  /* (f32, f64) */               \
  X(kTruncSatU,     TRUNC_SAT_U,    "trunc_sat_u",    kConvert,      kMaskInt,   kPure)  /* (f32, f64) */               \
  X(kConvertS,      CONVERT_S,      "convert_s",      kConvert,      kMaskFloat, kPure)  /* (i32, i64) */               \
  X(kConvertU,      CONVERT_U,      "convert_u",      kConvert,      kMaskFloat, kPure)  /* (i32, i64) */               \
  X(kPromote,       PROMOTE,        "promote",        kConvert,      kMaskF64,   kPure)  /* (f32) */                    \
  X(kDemote,        DEMOTE,         "demote",         kConvert,      kMaskF32,   kPure)  /* (f64) */                    \
  X(kBitcast,       BITCAST,        "bitcast",        kConvert,      kMaskAny,   kPure)  /* (same width) */             \
  /* memory; a fault at the address traps when MemFlags::kMemTraps is set */                                            \
  X(kLoad,          LOAD,           "load",           kLoad,         kMaskAny,   kReads | kCanTrap)                     \
  X(kLoad8S,        LOAD8_S,        "load8_s",        kLoad,         kMaskInt,   kReads | kCanTrap)                     \
  X(kLoad8U,        LOAD8_U,        "load8_u",        kLoad,         kMaskInt,   kReads | kCanTrap)                     \
  X(kLoad16S,       LOAD16_S,       "load16_s",       kLoad,         kMaskInt,   kReads | kCanTrap)                     \
  X(kLoad16U,       LOAD16_U,       "load16_u",       kLoad,         kMaskInt,   kReads | kCanTrap)                     \
  X(kLoad32S,       LOAD32_S,       "load32_s",       kLoad,         kMaskI64,   kReads | kCanTrap)                     \
  X(kLoad32U,       LOAD32_U,       "load32_u",       kLoad,         kMaskI64,   kReads | kCanTrap)                     \
  X(kStore,         STORE,          "store",          kStore,        kMaskAny,   kWrites | kCanTrap)                    \
  X(kStore8,        STORE8,         "store8",         kStore,        kMaskInt,   kWrites | kCanTrap)                    \
  X(kStore16,       STORE16,        "store16",        kStore,        kMaskInt,   kWrites | kCanTrap)                    \
  X(kStore32,       STORE32,        "store32",        kStore,        kMaskI64,   kWrites | kCanTrap)                    \
  X(kSelect,        SELECT,         "select",         kSelect,       kMaskAny,   kPure)                                 \
  /* calls; the controlling type is the signature's result */                                                           \
  X(kCall,          CALL,           "call",           kCall,         kMaskAny | kMaskNone, kReads | kWrites | kCanTrap) \
  X(kCallIndirect,  CALL_INDIRECT,  "call_indirect",  kCallIndirect, kMaskAny | kMaskNone, kReads | kWrites | kCanTrap) \
  X(kCallHost,      CALL_HOST,      "call_host",      kCallHost,     kMaskAny | kMaskNone, kReads | kWrites | kCanTrap) \
  /* control */                                                                                                         \
  X(kJump,          JUMP,           "jump",           kJump,         kMaskNone,  kEndsBlock)                            \
  X(kBranch,        BRANCH,         "branch",         kBranch,       kMaskNone,  kEndsBlock)                            \
  X(kSwitch,        SWITCH,         "switch",         kSwitch,       kMaskNone,  kEndsBlock)                            \
  X(kReturn,        RETURN,         "return",         kReturn,       kMaskNone,  kEndsBlock)                            \
  X(kTrap,          TRAP,           "trap",           kTrap,         kMaskNone,  kEndsBlock | kCanTrap)                 \
  X(kTrapIf,        TRAP_IF,        "trap_if",        kTrapIf,       kMaskNone,  kCanTrap | kPinned)                    \
  /* observation and speculation */                                                                                     \
  X(kLoopHeader,    LOOP_HEADER,    "loop_header",    kLoopHeader,   kMaskNone,  kPinned)                               \
  X(kProbe,         PROBE,          "probe",          kProbe,        kMaskNone,  kPinned)                               \
  X(kKnownCount,    KNOWN_COUNT,    "known_count",    kKnownCount,   kMaskI64,   kPure)                                 \
  X(kFrameState,    FRAME_STATE,    "frame_state",    kFrameState,   kMaskNone,  kPinned)                               \
  X(kGuard,         GUARD,          "guard",          kGuard,        kMaskNone,  kPinned | kCanTrap)                    \
  /* made by the optimizing compiler only; hosts cannot use them: see Shape::kBulk */                                   \
  X(kFill,          FILL,           "fill",           kBulk,         kMaskNone,  kWrites | kCanTrap)                    \
  X(kCopy,          COPY,           "copy",           kBulk,         kMaskNone,  kReads | kWrites | kCanTrap)           \
  /* made by the library for very large bodies; hosts cannot use it: see Shape::kFrameMemory */                         \
  X(kFrameMemory,   FRAME_MEMORY,   "frame_memory",   kFrameMemory,  kMaskRef,   kPinned)

// Reasons why a call ended without a result. Printed as the text that WebAssembly's tests use.
//   X(id, name, text)                                C: UPTIER_TRAP_<name>
#define UPTIER_TRAPS(X)                                                              \
  X(kNone,                 NONE,                    "none")                          \
  X(kUnreachable,          UNREACHABLE,             "unreachable")                   \
  X(kDivideByZero,         DIVIDE_BY_ZERO,          "integer divide by zero")        \
  X(kIntegerOverflow,      INTEGER_OVERFLOW,        "integer overflow")              \
  X(kInvalidConversion,    INVALID_CONVERSION,      "invalid conversion to integer") \
  X(kOutOfBoundsMemory,    OUT_OF_BOUNDS_MEMORY,    "out of bounds memory access")   \
  X(kOutOfBoundsTable,     OUT_OF_BOUNDS_TABLE,     "out of bounds table access")    \
  X(kUndefinedElement,     UNDEFINED_ELEMENT,       "undefined element")             \
  X(kUninitializedElement, UNINITIALIZED_ELEMENT,   "uninitialized element")         \
  X(kIndirectTypeMismatch, INDIRECT_TYPE_MISMATCH,  "indirect call type mismatch")   \
  X(kStackExhausted,       STACK_EXHAUSTED,         "call stack exhausted")          \
  X(kGuardFailed,          GUARD_FAILED,            "guard failed")                  \
  X(kHost,                 HOST,                    "trap raised by the host")       \
  X(kExit,                 EXIT,                    "program exit")                  \
  X(kNoCode,               NO_CODE,                 "no code could be made")         \
  X(kBadCall,              BAD_CALL,                "no such method or arguments")     \
  X(kNoThread,             NO_THREAD,               "the thread could not be attached") \
  X(kInterrupted,          INTERRUPTED,             "interrupted")                   \
  X(kOutOfFuel,            OUT_OF_FUEL,             "out of fuel")

// Reasons why a guard was placed; counted per (site, reason) across recompilations.
//   X(id, name, text)                                C: UPTIER_GUARD_<name>
#define UPTIER_GUARD_REASONS(X)          \
  X(kType,      TYPE,       "type")      \
  X(kOverflow,  OVERFLOW,   "overflow")  \
  X(kBounds,    BOUNDS,     "bounds")    \
  X(kTarget,    TARGET,     "target")    \
  X(kValue,     VALUE,      "value")     \
  X(kUnreached, UNREACHED,  "unreached") \
  X(kUser,      USER,       "user")

// Kinds of probes. `placed_by` is HOST if a body may use the kind, else LIBRARY. Numbers are part of
// the IR.
//   X(number, id, name, text, placed_by)             C: UPTIER_PROBE_<name>, HOST only
#define UPTIER_PROBE_KINDS(X)                              \
  X(1,  kBlock,      BLOCK,       "block",       LIBRARY)  \
  X(2,  kEdge,       EDGE,        "edge",        LIBRARY)  \
  X(3,  kCallTarget, CALL_TARGET, "call_target", HOST)     \
  X(4,  kValue,      VALUE,       "value",       HOST)     \
  X(5,  kLoop,       LOOP,        "loop",        LIBRARY)  \
  X(6,  kLog,        LOG,         "log",         HOST)     \
  X(7,  kCounter,    COUNTER,     "counter",     HOST)     \
  X(8,  kHit,        HIT,         "hit",         HOST)     \
  X(9,  kGauge,      GAUGE,       "gauge",       HOST)     \
  X(10, kRange,      RANGE,       "range",       HOST)
// clang-format on
