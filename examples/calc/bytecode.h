// bytecode.h: the register machine that calc programs are compiled to.
//
// Every function has a window of registers: r[0..params) are its arguments. An instruction is 8
// bytes. All functions of a program share one array of code, one of constants and one of field
// caches, so a pointer to an instruction identifies it everywhere.
//
// What the interpreter learns is kept beside the code, by place: kinds of values (a byte per
// instruction) and the shapes that a field access met. It only ever grows, one thread writes it,
// and the compiler's thread may read it at any time.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "object.h"

namespace calc {

inline constexpr uint32_t kMaxParams = 6;

// clang-format off
#define CALC_OPCODES(X)                                                                            \
  X(kMove)        /* a = b */                                                                      \
  X(kConst)       /* a = k[d] */                                                                   \
  X(kGetGlobal)   /* a = global d */                                                               \
  X(kSetGlobal)   /* global d = a */                                                               \
  X(kGetCapture)  /* a = *capture d */                                                             \
  X(kSetCapture)  /* *capture d = a */                                                             \
  X(kNewCell)     /* a = cell of a */                                                              \
  X(kGetCell)     /* a = *b */                                                                     \
  X(kSetCell)     /* *a = b */                                                                     \
  X(kAdd) X(kSub) X(kMul) X(kDiv) X(kFloorDiv) X(kMod)                     /* a = b op c */        \
  X(kAddK) X(kSubK) X(kMulK) X(kDivK) X(kFloorDivK) X(kModK)               /* a = b op k[d] */     \
  X(kNeg) X(kNot)                                                          /* a = op b */          \
  X(kLess) X(kLessEqual) X(kEqual) X(kNotEqual)                            /* a = b op c */        \
  X(kJump)        /* to d */                                                                       \
  X(kJumpIf) X(kJumpUnless)                                                /* to d by a */         \
  X(kJumpLess) X(kJumpLessEqual) X(kJumpEqual)                             /* to d if a op b */    \
  X(kJumpNotLess) X(kJumpNotLessEqual) X(kJumpNotEqual)                    /* to d if not */       \
  X(kJumpLessK) X(kJumpLessEqualK) X(kJumpGreaterK) X(kJumpGreaterEqualK)  /* a op k[b | c<<8] */  \
  X(kJumpEqualK)                                                                                   \
  X(kJumpNotLessK) X(kJumpNotLessEqualK) X(kJumpNotGreaterK) X(kJumpNotGreaterEqualK)              \
  X(kJumpNotEqualK)                                                                                \
  X(kLoop)        /* to d, a loop's header */                                                      \
  X(kForPrepare)  /* a, a+1: ints; to d unless a < a+1 */                                          \
  X(kForLoop)     /* ++a; to d, a loop's header, if a < a+1 */                                     \
  X(kGetField)    /* a = b.cache[d] */                                                             \
  X(kSetField)    /* a.cache[d] = b */                                                             \
  X(kGetIndex)    /* a = b[c] */                                                                   \
  X(kSetIndex)    /* a[b] = c */                                                                   \
  X(kNewArray)    /* a = [b, b+1, ... c of them] */                                                \
  X(kNewRecord)   /* a = record of literal d with fields b, b+1, ... */                            \
  X(kClosure)     /* a = closure of function d */                                                  \
  X(kCall)        /* a = a(a+1, ... c of them); d: its cache */                                                  \
  X(kBuiltin)     /* a = builtin b (a, a+1, ... c of them) */                                      \
  X(kReturn)      /* a */
// clang-format on

enum class Op : uint8_t {
#define X(id) id,
  CALC_OPCODES(X)
#undef X
};

struct Instr {
  Op op;
  uint8_t a, b, c;
  int32_t d;  // jump targets are places in the code of the whole program

  uint32_t wide() const { return b | uint32_t{c} << 8; }
};

// What a place has seen: bits of Kind, and these.
inline constexpr uint16_t kOverflow = 256;   // ints whose result was none
inline constexpr uint16_t kReached = 512;    // it ran
inline constexpr uint16_t kStranger = 1024;  // a value that the place is not fast for

// The shapes that a field access met, and where the field was.
struct FieldCache {
  static constexpr uint32_t kSize = 4;
  struct Entry {
    Shape* shape = nullptr;
    uint32_t slot = 0;
    Shape* next = nullptr;  // the shape afterwards, when a store adds the field; else null
  };

  String* name = nullptr;
  Entry entries[kSize];
  std::atomic<uint32_t> count = 0;       // entries behind it are not valid yet
  std::atomic<bool> overflowed = false;  // more shapes than there is room for
};

// The functions that a call met.
struct CallCache {
  std::atomic<struct Proto*> first = nullptr;
  std::atomic<bool> many = false;
};

struct Proto {
  std::string name;
  uint32_t index = 0;
  uint32_t begin = 0, end = 0;  // of its code
  uint32_t params = 0;
  uint32_t registers = 0;
  struct Capture {
    bool local;  // a cell in a register of the function around, or a capture of that
    uint32_t index;
  };
  std::vector<Capture> captures;

  // With a runtime (tiers.h): what calls go to, and the countdown of its loops.
  struct Vm* vm = nullptr;
  const void* entry = nullptr;
  int32_t* loop_countdown = nullptr;
};

struct Code {
  std::vector<Instr> instrs;
  std::vector<int> lines;  // by instruction
  std::vector<Val> constants;
  std::vector<std::unique_ptr<Proto>> protos;  // the first is the top level
  std::vector<Shape*> literals;                // shapes of record literals
  std::vector<std::unique_ptr<FieldCache>> caches;
  std::vector<std::unique_ptr<CallCache>> calls;
  std::unique_ptr<std::atomic<uint16_t>[]> seen;         // by instruction
  std::unique_ptr<std::atomic<uint16_t>[]> params_seen;  // by function, kMaxParams each
  uint32_t globals = 0;
};

struct Program;
// Compiles a program. Returns what is wrong (too many registers), or nothing.
std::string compile(const Program& program, Heap& heap, Code& code);

// Notes what a place has seen; a plain load where there is nothing new.
inline void note(std::atomic<uint16_t>& at, unsigned bits) {
  uint16_t old = at.load(std::memory_order_relaxed);
  if ((old & bits) != bits) at.store(static_cast<uint16_t>(old | bits), std::memory_order_relaxed);
}

}  // namespace calc
