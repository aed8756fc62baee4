// code_reader.h: walks the instructions of a validated function body.
//
// Law: only bytes that read_module accepted are read, so nothing is checked twice. Offsets are of
// the module's bytes; instructions behind a prefix byte are numbered prefix << 8 | number.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "embed/wasm/module_info.h"

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
  kLastNumeric = 0xc4,        // i64.extend32_s
  kFirstSaturating = 0xfc00,  // i32.trunc_sat_f32_s
  kLastSaturating = 0xfc07,   // i64.trunc_sat_f64_u
  kMemoryInit = 0xfc08,
  kDataDrop = 0xfc09,
  kMemoryCopy = 0xfc0a,
  kMemoryFill = 0xfc0b,
  kTableInit = 0xfc0c,
  kElemDrop = 0xfc0d,
  kTableCopy = 0xfc0e,
};

inline bool is_between(Op op, Op first, Op last) { return op >= first && op <= last; }
inline bool is_memory_access(Op op) { return is_between(op, Op::kFirstLoad, Op::kLastStore); }

// Where a memory instruction goes, beside its index operand.
struct MemArg {
  uint32_t align = 0;  // log2; a hint without effect
  uint32_t offset = 0;
};

// What a block takes and leaves; views into the module's types or into one static type each.
struct BlockType {
  std::span<const Type> params;
  std::span<const Type> results;
};

class CodeReader {
 public:
  CodeReader(const ModuleInfo& info, const FunctionInfo& function)
      : info_(info), bytes_(info.bytes.data()), at_(function.body_begin), end_(function.body_end) {}

  uint32_t offset() const { return at_; }
  bool done() const { return at_ >= end_; }

  Op op() {
    uint16_t code = byte();
    if (code == 0xfc) code = static_cast<uint16_t>(code << 8 | u32());
    return static_cast<Op>(code);
  }
  uint8_t byte() { return bytes_[at_++]; }
  // Most numbers are one byte long.
  uint32_t u32() { return bytes_[at_] < 0x80 ? byte() : static_cast<uint32_t>(leb()); }
  int32_t s32() { return static_cast<int32_t>(signed_leb()); }
  int64_t s64() { return signed_leb(); }
  uint32_t fixed32() { return fixed<uint32_t>(); }
  uint64_t fixed64() { return fixed<uint64_t>(); }
  MemArg mem_arg() {
    uint32_t align = u32();
    return {align, u32()};
  }
  BlockType block_type();

  // Moves past the immediates of `op`.
  void skip_immediates(Op op);

 private:
  uint64_t leb();
  int64_t signed_leb();
  template <typename T>
  T fixed() {
    T v;
    std::memcpy(&v, &bytes_[at_], sizeof v);
    at_ += sizeof v;
    return v;
  }

  const ModuleInfo& info_;
  const uint8_t* bytes_;
  uint32_t at_;
  uint32_t end_;
};

// Returns the value type of a byte of the binary format.
Type value_type(uint8_t code);

}  // namespace uptier::wasm
