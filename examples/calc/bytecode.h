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

#include "object.h"

namespace calc {

inline constexpr uint32_t kMaxParams = 6;

// Each with the registers that it reads and writes: a, b, c; x is the one after a; * are c of them
// from b on, & c of them from a on, + one more than those; ^ the cells that a closure captures.
// clang-format off
#define CALC_ARITHMETIC(X) X(Add) X(Sub) X(Mul) X(Div) X(FloorDiv) X(Mod)
#define CALC_COMPARISONS(X) X(Less) X(LessEqual) X(Greater) X(GreaterEqual) X(Equal)
#define CALC_OPCODES                                                                            \
  CALC_X(kMove, "b", "a")         /* a = b */                                                           \
  CALC_X(kConst, "", "a")         /* a = k[d] */                                                        \
  CALC_X(kGetGlobal, "", "a")     /* a = global d */                                                    \
  CALC_X(kSetGlobal, "a", "")     /* global d = a */                                                    \
  CALC_X(kGetCapture, "", "a")    /* a = *capture d */                                                  \
  CALC_X(kSetCapture, "a", "")    /* *capture d = a */                                                  \
  CALC_X(kNewCell, "a", "a")      /* a = cell of a */                                                   \
  CALC_X(kGetCell, "b", "a")      /* a = *b */                                                          \
  CALC_X(kSetCell, "ab", "")      /* *a = b */                                                          \
  CALC_ARITHMETIC(CALC_BC)   /* a = b op c */                                                      \
  CALC_ARITHMETIC(CALC_BK)   /* a = b op k[d] */                                                   \
  CALC_X(kNeg, "b", "a") CALC_X(kNot, "b", "a")                                                              \
  CALC_COMPARISONS(CALC_BC)                                                                        \
  CALC_X(kJump, "", "")           /* to d */                                                            \
  CALC_X(kJumpIf, "a", "") CALC_X(kJumpUnless, "a", "")                                                      \
  CALC_COMPARISONS(CALC_JUMP)     /* to d if a op b */                                             \
  CALC_COMPARISONS(CALC_JUMPNOT)  /* to d if not */                                                \
  CALC_COMPARISONS(CALC_JUMPK)    /* a op k[b | c << 8] */                                         \
  CALC_COMPARISONS(CALC_JUMPNOTK)                                                                  \
  CALC_X(kLoop, "", "")           /* to d, a loop's header */                                           \
  CALC_X(kForPrepare, "ax", "ax") /* makes a, a+1 ints; to d unless a < a+1 */                          \
  CALC_X(kForLoop, "ax", "a")     /* ++a; to d, a loop's header, if a < a+1 */                          \
  CALC_X(kGetField, "b", "a")     /* a = b.cache[d] */                                                  \
  CALC_X(kSetField, "ab", "")     /* a.cache[d] = b */                                                  \
  CALC_X(kGetIndex, "bc", "a")    /* a = b[c] */                                                        \
  CALC_X(kSetIndex, "abc", "")    /* a[b] = c */                                                        \
  CALC_X(kNewArray, "*", "a")     /* a = [b, b+1, ... c of them] */                                     \
  CALC_X(kNewRecord, "*", "a")    /* a = record of literal d with fields b, b+1, ... */                 \
  CALC_X(kClosure, "^", "a")      /* a = closure of function d */                                       \
  CALC_X(kCall, "+", "a")         /* a = a(a+1, ... c of them); d: its cache */                         \
  CALC_X(kBuiltin, "&", "a")      /* a = builtin b (a, a+1, ... c of them); d: as it likes */           \
  CALC_X(kReturn, "a", "")
#define CALC_BC(name) CALC_X(k##name, "bc", "a")
#define CALC_BK(name) CALC_X(k##name##K, "b", "a")
#define CALC_JUMP(name) CALC_X(kJump##name, "ab", "")
#define CALC_JUMPNOT(name) CALC_X(kJumpNot##name, "ab", "")
#define CALC_JUMPK(name) CALC_X(kJump##name##K, "a", "")
#define CALC_JUMPNOTK(name) CALC_X(kJumpNot##name##K, "a", "")

#define CALC_X(id, reads, writes) id,
enum class Op : uint8_t { CALC_OPCODES };
#undef CALC_X
// clang-format on

constexpr Op operator+(Op op, int n) { return static_cast<Op>(static_cast<int>(op) + n); }
constexpr int operator-(Op a, Op b) { return static_cast<int>(a) - static_cast<int>(b); }
inline bool is_jump(Op op) { return op >= Op::kJump && op <= Op::kForLoop; }  // d is a place
inline constexpr int kComparisons = Op::kJumpNotLess - Op::kJumpLess;

// a op b without what the instruction does with it: an Op from kAdd or from kLess on.
inline Op operation(Op op) {
  if (op >= Op::kAddK && op <= Op::kModK) return Op::kAdd + (op - Op::kAddK);
  if (op < Op::kJumpLess || op > Op::kJumpNotEqualK) return op;
  return Op::kLess + (op - Op::kJumpLess) % kComparisons;
}

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
inline constexpr uint16_t kNoHoist = 2048;   // a loop's header where a guard for its body failed

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
  std::atomic<Proto*> first = nullptr;
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

// Compiles a program. Returns what is wrong with it, and in which line, or nothing.
std::string compile(std::string_view source, Heap& heap, Code& code);

// Notes what a place has seen; a plain load where there is nothing new.
inline void note(std::atomic<uint16_t>& at, unsigned bits) {
  uint16_t old = at.load(std::memory_order_relaxed);
  if ((old & bits) != bits) at.store(static_cast<uint16_t>(old | bits), std::memory_order_relaxed);
}

}  // namespace calc
