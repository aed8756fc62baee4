// The x86-64 instructions that the optimizing compiler uses: MInst::op and the values of its other
// fields. See machine/machine.h.
#pragma once

#include <cstdint>

#include "jit/machine/machine.h"

namespace uptier::jit::machine {

// The condition codes of x86, in their encoding; `^ 1` is the opposite. The last two are float
// equality, which takes two flags: equal and ordered, and its opposite.
enum class Cond : uint8_t {
  kO,
  kNO,
  kB,
  kAE,
  kE,
  kNE,
  kBE,
  kA,
  kS,
  kNS,
  kP,
  kNP,
  kL,
  kGE,
  kLE,
  kG,
  kFloatE,
  kFloatNE,
};
constexpr Cond opposite(Cond c) { return static_cast<Cond>(static_cast<uint8_t>(c) ^ 1); }

enum class MOp : uint8_t {
  kLabel,        // the start of a block; defines its parameters
  kEntry,        // the function's parameters, kFixed definitions
  kLoadFrame,    // d = [rbp + disp]: a stack parameter, or a slot of the baseline frame
  kMov,          // d = a
  kConst,        // d = imm
  kFConst,       // d = imm, float bits
  kAlu,          // d = a op b                      sub: AluOp
  kAluTrap,      // the same; traps on signed overflow
  kAluOverflow,  // d = whether a op b overflows
  kMulImm,       // d = a * imm                     a may be memory
  kNeg,
  kNot,
  kShiftImm,  // d = a op imm                    sub: ShiftOp
  kShiftVar,  // d = a op b
  kLea,       // d = address
  kBits,      // d = clz/ctz/popcnt a            sub: Opcode
  kExtend,    // d = extended a                  sub: Extension
  kLoad,      // d = memory                      sub: Extension; width: of the access
  kFLoad,
  kStore,  // memory = a, or imm              width: of the access
  kFStore,
  kAluStore,  // memory = memory op a, or imm    sub: AluOp
  kDiv,       // d = a div/rem b                 sub: Opcode
  kMulHigh,   // d = the upper half of a * b     sub: Opcode
  kFAlu,      // d = a op b                      sub: Opcode
  kFUnary,    // d = op a                        sub: Opcode
  kFSign,     // abs, neg, copysign              sub: Opcode
  kConvert,   // d = op a                        sub: Opcode, types: from, to
  kSet,       // d = condition                   test fields
  kSelect,    // d = condition ? x : y           test fields
  kTrapIf,    // test fields, trap                     d = the tested sum, if it is needed
  kBranch,    // test fields; edges: taken, not taken
  kJump,
  kSwitch,  // jumps to the edge numbered a, the last one if there are fewer; imm: a is less than it; or 0
  kReturn,
  kTrap,
  kCall,
  kCallIndirect,
  kCallHost,
  kLeave,     // leaves through its exit               sub: Leaving
  kLoadSlab,  // d = the slab of the calling thread
  kBulk,      // rep stos or movs: rdi, rsi or rax, rcx  sub: Opcode
  kObserve,  // slab a, 64-bit value b: sub: ProbeKind; imm: place; disp: shape or tag; loc   as kCount
  kTally,  // adds a, or 1, to the thread's word imm      destroys the flags, r11
  kCount,  // increment of the word imm of slab a      destroys the flags, r11
};

// The operation that sets the flags of kSet, kSelect, kTrapIf and kBranch. kAdd to kMul compute in
// d if a kTrapIf has one, else in r11. kCountDown adds imm to the fuel in memory.
enum class Test : uint8_t { kCmp, kTest, kUcomis, kCountDown, kAdd, kSub, kMul };

// The form of the second source; `a` is the first. kM..: the first source is memory.
enum class Form : uint8_t { kRR, kRI, kRM, kMR, kMI, kM, kRC };  // kRC: a constant of the pool, imm

}  // namespace uptier::jit::machine

namespace uptier::jit::x64 {

using namespace machine;  // NOLINT: the vocabulary of every file here

enum class AluOp : uint8_t { kAdd, kOr, kAnd, kSub, kXor, kMul };
enum class ShiftOp : uint8_t { kShl, kShr, kSar, kRol, kRor };
enum class Extension : uint8_t { kNone, kZero8, kZero16, kZero32, kSign8, kSign16, kSign32 };

// When a kLeave leaves.
enum class Leaving : uint8_t {
  kAlways,  // unconditionally: this is the end of the code
  kAsked,   // asks the runtime each time, and may come back
  kPolled,  // asks if the code's poll word is not 0, and may come back
};

}  // namespace uptier::jit::x64
