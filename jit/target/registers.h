// The registers of the machine that code is made for, as numbers and masks.
//
// Registers are numbered from 0: general ones first, from kFirstFloatRegister on those that hold
// floats. Everything here but the functions comes from the header of the target. That header defines,
// in uptier::jit::machine:
//
//   RegMask                an unsigned integer with a bit for each register
//   kRegCount              how many numbers there are; kFirstFloatRegister, kFramePointer
//   kAllocatableGeneral, kAllocatableFloat   what the register allocator may use
//   kCalleeSaved           what a call keeps; kCallClobbers: what it may change, of the allocatable
//   kSavedByLeave          the callee-saved registers that code saves, in the order of leave.h
//   kGeneralScratch, kFloatScratch   never allocated: what moves and sequences may overwrite
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
