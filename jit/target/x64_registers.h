// The registers of x86-64: see registers.h for the meaning of each name.
//
// 0..15 are the general purpose registers by their encoding, 16..31 are xmm0..xmm15, so one 32-bit
// mask holds any set. Never allocated: rsp; rbp, the frame; r11 and xmm15, scratch of moves and
// sequences.
#pragma once

#include <cstdint>

namespace uptier::jit::x64 {

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
};

}  // namespace uptier::jit::x64

namespace uptier::jit::machine {

using RegMask = uint32_t;

inline constexpr unsigned kRegCount = 32;
inline constexpr unsigned kFirstFloatRegister = 16;
inline constexpr unsigned kFramePointer = x64::kRbp;
inline constexpr unsigned kGeneralScratch = x64::kR11;
inline constexpr unsigned kFloatScratch = x64::kXmm15;
inline constexpr uint8_t kSavedByLeave[] = {x64::kRbx, x64::kR12, x64::kR13, x64::kR14, x64::kR15};

inline constexpr RegMask kAllocatableGeneral =
    0xFFFF & ~(RegMask{1} << x64::kRsp | RegMask{1} << x64::kRbp | RegMask{1} << x64::kR11);
inline constexpr RegMask kAllocatableFloat = 0xFFFF0000 & ~(RegMask{1} << x64::kXmm15);
inline constexpr RegMask kCalleeSaved = RegMask{1} << x64::kRbx | RegMask{1} << x64::kR12 |
                                        RegMask{1} << x64::kR13 | RegMask{1} << x64::kR14 |
                                        RegMask{1} << x64::kR15;
// The allocatable registers that the System V calling convention does not preserve.
inline constexpr RegMask kCallClobbers = (kAllocatableGeneral | kAllocatableFloat) & ~kCalleeSaved;

}  // namespace uptier::jit::machine
