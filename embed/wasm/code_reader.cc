#include "embed/wasm/code_reader.h"

#include <algorithm>

namespace uptier::wasm {

static_assert(std::endian::native == std::endian::little, "fixed() reads the format's own order");

CodeReader::CodeReader(std::span<const uint8_t> module, uint64_t begin, uint64_t end)
    : bytes_(module.data()) {
  end_ = static_cast<uint32_t>(std::min<uint64_t>({end, module.size(), UINT32_MAX}));
  at_ = static_cast<uint32_t>(std::min<uint64_t>(begin, end_));
}

uint64_t CodeReader::leb() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    uint8_t b = byte();
    value |= uint64_t{b & 0x7fu} << shift;
    if ((b & 0x80) == 0) return value;
  }
  return stop();
}

int64_t CodeReader::signed_leb(unsigned most_bytes) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 7 * most_bytes;) {
    uint8_t b = byte();
    value |= uint64_t{b & 0x7fu} << shift;
    shift += 7;
    if ((b & 0x80) != 0) continue;
    if (shift < 64 && (b & 0x40) != 0) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }
  return stop();
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

// Returns the number of a type, or a type as a negative number, which has one byte.
int64_t CodeReader::block_code() {
  const uint32_t at = at_;
  const int64_t code = signed_leb(5);
  return code < 0 && at_ - at != 1 ? stop() : code;
}

BlockType CodeReader::block_type(std::span<const FuncType> types) {
  static constexpr Type kSingle[] = {Type::kI32, Type::kI64, Type::kF32, Type::kF64};
  constexpr int64_t kNothing = -64;  // 0x40
  const int64_t code = block_code();
  if (bad_) return {};
  if (code >= 0) {
    if (static_cast<uint64_t>(code) >= types.size()) {
      stop();
      return {};
    }
    const FuncType& type = types[static_cast<size_t>(code)];
    return {type.params, type.results};
  }
  const Type t = code > kNothing ? value_type(static_cast<uint8_t>(code & 0x7f)) : Type::kNone;
  if (t != Type::kNone) {
    return {{}, {&kSingle[static_cast<size_t>(t) - static_cast<size_t>(Type::kI32)], 1}};
  }
  if (code != kNothing) stop();
  return {};
}

LocalGroup CodeReader::local_group() {
  LocalGroup g;
  g.count = u32();
  g.type = value_type(byte());
  if (g.type == Type::kNone) stop();
  return g;
}

void CodeReader::skip(Immediates immediates) {
  switch (immediates) {
    case Immediates::kNone: return;
    case Immediates::kIndex: u32(); return;
    case Immediates::kTwoIndices:
    case Immediates::kMemArg:
      u32();
      u32();
      return;
    case Immediates::kBlockType: block_code(); return;
    case Immediates::kI32: signed_leb(5); return;
    case Immediates::kI64: signed_leb(10); return;
    case Immediates::kF32: fixed32(); return;
    case Immediates::kF64: fixed64(); return;
    case Immediates::kTargets:
    case Immediates::kTypes: skip_many(immediates); return;
    case Immediates::kNotServed: break;
  }
  stop();
}

void CodeReader::skip_many(Immediates immediates) {
  uint64_t left = u32();
  if (immediates == Immediates::kTypes) {
    for (; left > 0 && !bad_; --left) {
      if (value_type(byte()) == Type::kNone) stop();
    }
    return;
  }
  for (++left; left > 0 && !bad_; --left) u32();
}

}  // namespace uptier::wasm
