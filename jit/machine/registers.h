// Registers: the machine registers as numbers and masks.
//
// 0..15 are the general purpose registers by their encoding, 16..31 are xmm0..xmm15, so one 32-bit
// mask holds any set. Never allocated: rsp; rbp, the frame; r11 and xmm15, scratch of moves and
// sequences.
#pragma once

#include <cstdint>

#include "uptier/ids.h"

namespace uptier::jit::x64 {

using RegMask = uint32_t;

enum Reg : uint8_t {
  kRax,
  kRcx,
  kRdx,
  kRbx,
  kRsp,
  kRbp,
  kRsi,
  kRdi,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15,
  kXmm0,
  kXmm1,
  kXmm2,
  kXmm3,
  kXmm4,
  kXmm5,
  kXmm6,
  kXmm7,
  kXmm15 = 31,
  kRegCount = 32,
};

enum class RegClass : uint8_t { kGp, kXmm };

constexpr RegMask mask_of(unsigned reg) { return RegMask{1} << reg; }
constexpr RegClass class_of(unsigned reg) { return reg < 16 ? RegClass::kGp : RegClass::kXmm; }
constexpr RegClass class_of(Type t) { return is_float(t) ? RegClass::kXmm : RegClass::kGp; }

inline constexpr RegMask kAllocatableGp = 0xFFFF & ~(mask_of(kRsp) | mask_of(kRbp) | mask_of(kR11));
inline constexpr RegMask kAllocatableXmm = 0xFFFF0000 & ~mask_of(kXmm15);
inline constexpr RegMask kCalleeSaved =
    mask_of(kRbx) | mask_of(kR12) | mask_of(kR13) | mask_of(kR14) | mask_of(kR15);
// What a System V call may change, of what is allocated.
inline constexpr RegMask kCallClobbers = (kAllocatableGp | kAllocatableXmm) & ~kCalleeSaved;

constexpr RegMask allocatable(RegClass c) {
  return c == RegClass::kGp ? kAllocatableGp : kAllocatableXmm;
}

}  // namespace uptier::jit::x64
