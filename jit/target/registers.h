// The registers of the target machine, as numbers and masks.
//
// Registers are numbered from 0: first the general ones, then, from kFirstFloatRegister on, those
// that hold floats. Everything here except the functions comes from the header of the target. That
// header defines, in uptier::jit::machine:
//
//   RegMask                an unsigned integer with a bit for each register
//   kRegCount              how many numbers there are; kFirstFloatRegister, kFramePointer
//   kAllocatableGeneral, kAllocatableFloat   the registers that the register allocator may use
//   kCalleeSaved           preserved by a call; kCallClobbers: the allocatable ones that it may change
//   kSavedByLeave          the callee-saved registers that code saves, in the order of leave.h
//   kGeneralScratch, kFloatScratch   never allocated: moves and sequences may overwrite them
#pragma once

#include <cstdint>

#include "uptier/ids.h"

#if defined(__x86_64__)
#include "jit/target/x64_registers.h"
#else
#error "no header of registers for this machine: see jit/README.md, A second target"
#endif

namespace uptier::jit::machine {

enum class RegClass : uint8_t { kGeneral, kFloat };

constexpr RegMask mask_of(unsigned reg) { return RegMask{1} << reg; }
constexpr RegClass class_of(unsigned reg) {
  return reg < kFirstFloatRegister ? RegClass::kGeneral : RegClass::kFloat;
}
constexpr RegClass class_of(Type t) { return is_float(t) ? RegClass::kFloat : RegClass::kGeneral; }
constexpr RegMask allocatable(RegClass c) {
  return c == RegClass::kGeneral ? kAllocatableGeneral : kAllocatableFloat;
}

}  // namespace uptier::jit::machine
