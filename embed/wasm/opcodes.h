// opcodes.h: the instructions that the engine serves.
//
// Law: this is the only list of instructions. The validator refuses an instruction without a row here,
// and reads immediates by the rows, beside the validating library; the translator knows no other
// instructions. So both always agree about which bytes are instructions.
//
// Instructions after a prefix byte are numbered prefix << 8 | number.
#pragma once

#include <cstdint>

namespace uptier::wasm {

// Instructions that are named in code; the numeric ones are rows of a table (build_numeric.cc).
enum class Op : uint16_t {
  kUnreachable = 0x00,
  kNop = 0x01,
  kBlock = 0x02,
  kLoop = 0x03,
  kIf = 0x04,
  kElse = 0x05,
  kEnd = 0x0b,
  kBr = 0x0c,
  kBrIf = 0x0d,
  kBrTable = 0x0e,
  kReturn = 0x0f,
  kCall = 0x10,
  kCallIndirect = 0x11,
  kDrop = 0x1a,
  kSelect = 0x1b,
  kSelectTyped = 0x1c,
  kLocalGet = 0x20,
  kLocalSet = 0x21,
  kLocalTee = 0x22,
  kGlobalGet = 0x23,
  kGlobalSet = 0x24,
  kFirstLoad = 0x28,   // i32.load
  kLastLoad = 0x35,    // i64.load32_u
  kFirstStore = 0x36,  // i32.store
  kLastStore = 0x3e,   // i64.store32
  kMemorySize = 0x3f,
  kMemoryGrow = 0x40,
  kI32Const = 0x41,
  kI64Const = 0x42,
  kF32Const = 0x43,
  kF64Const = 0x44,
  kI32Eqz = 0x45,
  kFirstNumeric = 0x45,
  kLastNumeric = 0xc4,  // i64.extend32_s
  kPrefix = 0xfc,
  kFirstSaturating = 0xfc00,  // i32.trunc_sat_f32_s
  kLastSaturating = 0xfc07,   // i64.trunc_sat_f64_u
  kMemoryInit = 0xfc08,
  kDataDrop = 0xfc09,
  kMemoryCopy = 0xfc0a,
  kMemoryFill = 0xfc0b,
  kTableInit = 0xfc0c,
  kElemDrop = 0xfc0d,
  kTableCopy = 0xfc0e,
  kNotServed = 0xffff,  // after a prefix, with a number that has no place in 8 bits
};

inline constexpr bool is_between(Op op, Op first, Op last) { return op >= first && op <= last; }

// The immediates of an instruction.
enum class Immediates : uint8_t {
  kNotServed,  // unknown: the instruction is none of the engine's
  kNone,
  kBlockType,
  kIndex,       // of a local, a function, a segment, ..., or a depth; a number of 32 bits
  kTwoIndices,  // a segment or a type, and a table or a memory; or two of these
  kMemArg,      // alignment and offset
  kI32,
  kI64,
  kF32,
  kF64,
  kTargets,  // a count, as many depths, and one more
  kTypes,    // a count, and as many types
};

// Returns the row of an instruction of one byte.
constexpr Immediates immediates_of_byte(uint8_t code) {
  const Op op = static_cast<Op>(code);
  if (is_between(op, Op::kFirstNumeric, Op::kLastNumeric)) return Immediates::kNone;
  if (is_between(op, Op::kFirstLoad, Op::kLastStore)) return Immediates::kMemArg;
  switch (op) {
    case Op::kUnreachable:
    case Op::kNop:
    case Op::kElse:
    case Op::kEnd:
    case Op::kReturn:
    case Op::kDrop:
    case Op::kSelect: return Immediates::kNone;
    case Op::kBlock:
    case Op::kLoop:
    case Op::kIf: return Immediates::kBlockType;
    case Op::kBr:
    case Op::kBrIf:
    case Op::kCall:
    case Op::kLocalGet:
    case Op::kLocalSet:
    case Op::kLocalTee:
    case Op::kGlobalGet:
    case Op::kGlobalSet:
    case Op::kMemorySize:
    case Op::kMemoryGrow: return Immediates::kIndex;
    case Op::kBrTable: return Immediates::kTargets;
    case Op::kCallIndirect: return Immediates::kTwoIndices;
    case Op::kSelectTyped: return Immediates::kTypes;
    case Op::kI32Const: return Immediates::kI32;
    case Op::kI64Const: return Immediates::kI64;
    case Op::kF32Const: return Immediates::kF32;
    case Op::kF64Const: return Immediates::kF64;
    default: return Immediates::kNotServed;
  }
}

// The same, to be looked up.
struct ByteRows {
  Immediates of[256];
  constexpr ByteRows() : of() {
    for (int code = 0; code < 256; ++code)
      of[code] = immediates_of_byte(static_cast<uint8_t>(code));
  }
};
inline constexpr ByteRows kByteRows;

// Returns the row of an instruction, kNotServed where there is none.
constexpr Immediates immediates_of(Op op) {
  if (static_cast<uint16_t>(op) < 256) return kByteRows.of[static_cast<uint16_t>(op)];
  if (is_between(op, Op::kFirstSaturating, Op::kLastSaturating)) return Immediates::kNone;
  switch (op) {
    case Op::kDataDrop:
    case Op::kElemDrop:
    case Op::kMemoryFill: return Immediates::kIndex;
    case Op::kMemoryInit:
    case Op::kMemoryCopy:
    case Op::kTableInit:
    case Op::kTableCopy: return Immediates::kTwoIndices;
    default: return Immediates::kNotServed;
  }
}

// Returns the feature of WebAssembly that an instruction belongs to which the engine does not serve,
// or null for a number that no feature has. `prefix` is the only byte, or the one before `number`.
const char* feature_of(uint8_t prefix, uint32_t number);

}  // namespace uptier::wasm
