#include "embed/wasm/code_reader.h"

namespace uptier::wasm {

static_assert(std::endian::native == std::endian::little, "fixed() reads the format's own order");

uint64_t CodeReader::leb() {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t b = byte();
    value |= uint64_t{b & 0x7fu} << shift;
    if ((b & 0x80) == 0) return value;
  }
}

int64_t CodeReader::signed_leb() {
  uint64_t value = 0;
  for (unsigned shift = 0;;) {
    uint8_t b = byte();
    value |= uint64_t{b & 0x7fu} << shift;
    shift += 7;
    if ((b & 0x80) != 0) continue;
    if (shift < 64 && (b & 0x40) != 0) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }
}

Type value_type(uint8_t code) {
  switch (code) {
    case 0x7f: return Type::kI32;
    case 0x7e: return Type::kI64;
    case 0x7d: return Type::kF32;
    case 0x7c: return Type::kF64;
    default: return Type::kNone;
  }
}

BlockType CodeReader::block_type() {
  static constexpr Type kSingle[] = {Type::kI32, Type::kI64, Type::kF32, Type::kF64};
  int64_t code = signed_leb();
  if (code >= 0) {
    const FuncType& type = info_.types[static_cast<size_t>(code)];
    return {type.params, type.results};
  }
  Type t = value_type(static_cast<uint8_t>(code & 0x7f));
  if (t == Type::kNone) return {};
  return {{}, {&kSingle[static_cast<size_t>(t) - static_cast<size_t>(Type::kI32)], 1}};
}

void CodeReader::skip_immediates(Op op) {
  if (is_memory_access(op)) {
    mem_arg();
    return;
  }
  switch (op) {
    case Op::kBlock:
    case Op::kLoop:
    case Op::kIf:
    case Op::kI64Const: signed_leb(); return;
    case Op::kI32Const: signed_leb(); return;
    case Op::kF32Const: fixed32(); return;
    case Op::kF64Const: fixed64(); return;
    case Op::kBr:
    case Op::kBrIf:
    case Op::kCall:
    case Op::kLocalGet:
    case Op::kLocalSet:
    case Op::kLocalTee:
    case Op::kGlobalGet:
    case Op::kGlobalSet:
    case Op::kMemorySize:
    case Op::kMemoryGrow:
    case Op::kDataDrop:
    case Op::kElemDrop:
    case Op::kMemoryFill: u32(); return;
    case Op::kCallIndirect:
    case Op::kMemoryInit:
    case Op::kMemoryCopy:
    case Op::kTableInit:
    case Op::kTableCopy:
      u32();
      u32();
      return;
    case Op::kBrTable:
      for (uint64_t left = uint64_t{u32()} + 1; left > 0; --left) u32();
      return;
    case Op::kSelectTyped:
      for (uint32_t left = u32(); left > 0; --left) byte();
      return;
    default: return;
  }
}

}  // namespace uptier::wasm
