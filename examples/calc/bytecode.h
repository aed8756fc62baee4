// bytecode.h: the register machine that calc programs are compiled to.
//
// Every function has a window of registers: r[0..params) are its arguments. An instruction is 8
// bytes. All functions of a program share one array of code, so a pointer to an instruction
// identifies it everywhere.
//
// The interpreter keeps its observations beside the code, by place: the kinds of values, the shapes
// that a field access met, the functions that a call met. They only ever grow. One thread writes
// them, and the compiler's thread may read them at any time.
#pragma once

#include <atomic>

#include "object.h"
#include "uptier/planned_host.h"

namespace calc {

inline constexpr uint32_t kMaxParams = 6;

// Each operation, and how programs write it. A comparison also has the opcodes with which compiled
// code compares ints and doubles; arithmetic also has the strength with which the operator binds.
// clang-format off
#define CALC_COMPARISONS(X)                                                                       \
  X(Less, <, kLtS, kFLt) X(LessEqual, <=, kLeS, kFLe) X(Greater, >, kGtS, kFGt)                   \
  X(GreaterEqual, >=, kGeS, kFGe) X(Equal, ==, kEq, kFEq)
#define CALC_ARITHMETIC(X)                                                                        \
  X(Add, "+", 4) X(Sub, "-", 4) X(Mul, "*", 5) X(Div, "/", 5) X(FloorDiv, "//", 5) X(Mod, "%", 5)

// Each instruction with the registers that it reads and writes: a, b, c; x is the one after a; *
// are c of them from b on, & c of them from a on, + one more than those; ^ the cells that a closure
// captures. In pairs the second jumps when the first does not (Op ^ 1), or has k[...] for its last
// operand.
#define CALC_OPCODES                                                                              \
  CALC_COMPARISONS(CALC_JUMPS)                                                                    \
  CALC_X(JumpIf, "a", "") CALC_X(JumpUnless, "a", "")   /* to d, as in all jumps */               \
  CALC_X(Jump, "", "")                                                                            \
  CALC_X(ForPrepare, "ax", "ax")   /* makes a, a+1 ints; to d unless a < a+1 */                   \
  CALC_X(ForLoop, "ax", "a")       /* ++a; to d, a loop's header, if a < a+1 */                   \
  CALC_X(Loop, "", "")             /* to d, a loop's header */                                    \
  CALC_ARITHMETIC(CALC_BINARY)                                                                    \
  CALC_X(Negate, "b", "a")                                                                        \
  CALC_X(Move, "b", "a")           /* a = b */                                                    \
  CALC_X(Const, "", "a")           /* a = k[d] */                                                 \
  CALC_X(GetGlobal, "", "a")       /* a = global d */                                             \
  CALC_X(SetGlobal, "a", "")                                                                      \
  CALC_X(NewCell, "a", "a")        /* a = cell of a */                                            \
  CALC_X(GetCell, "b", "a")        /* a = *b */                                                   \
  CALC_X(SetCell, "ab", "")        /* *a = b */                                                   \
  CALC_X(GetCapture, "", "a")      /* a = *capture d */                                           \
  CALC_X(SetCapture, "a", "")                                                                     \
  CALC_X(GetField, "b", "a")       /* a = b.(name of fields[d]) */                                \
  CALC_X(SetField, "ab", "")       /* a.(name of fields[d]) = b */                                \
  CALC_X(GetIndex, "bc", "a")      /* a = b[c] */                                                 \
  CALC_X(SetIndex, "abc", "")      /* a[b] = c */                                                 \
  CALC_X(NewRow, "*", "a")         /* a = object of shapes[d]: b, b+1, ... c of them */           \
  CALC_X(NewClosure, "^", "a")     /* a = closure of function d */                                \
  CALC_X(Call, "+", "a")           /* a = a(a+1, ... c of them); d: into calls */                 \
  CALC_X(Builtin, "&", "a")        /* a = builtin b (a, a+1, ... c of them); d: as it likes */    \
  CALC_X(Return, "a", "")
#define CALC_JUMPS(name, ...)                                                                     \
  CALC_X(Jump##name, "ab", "") CALC_X(JumpNot##name, "ab", "")         /* if a < b */             \
  CALC_X(Jump##name##K, "a", "") CALC_X(JumpNot##name##K, "a", "")     /* if a < k[b] */
#define CALC_BINARY(name, ...)                                                                    \
  CALC_X(name, "bc", "a") CALC_X(name##K, "b", "a")                    /* a = b + c, b + k[d] */

#define CALC_X(name, reads, writes) k##name,
enum class Op : uint8_t { CALC_OPCODES };
#undef CALC_X
// clang-format on

constexpr Op operator+(Op op, int n) { return static_cast<Op>(static_cast<int>(op) + n); }
constexpr int operator-(Op a, Op b) { return static_cast<int>(a) - static_cast<int>(b); }
inline bool is_jump(Op op) { return op <= Op::kLoop; }
inline bool is_comparison(Op op) { return op < Op::kJumpIf; }
inline bool is_arithmetic(Op op) { return op >= Op::kAdd && op <= Op::kModK; }
// Returns the first opcode with the same operation: a comparison has four opcodes (kJumpLess,
// kJumpNotLess, kJumpLessK, kJumpNotLessK), arithmetic has two (kAdd, kAddK).
inline Op operation(Op op) { return op + -(op - Op::kJumpLess) % (is_comparison(op) ? 4 : 2); }
inline bool negated(Op op) { return (op - Op::kJumpLess) % 2 == 1; }
inline bool has_constant(Op op) { return op - operation(op) >= (is_comparison(op) ? 2 : 1); }

struct Instr {
  Op op;
  uint8_t a, b, c;
  int32_t d;  // jump targets are places in the code of the whole program
};

// The observations of a place: the bits of Kind, and these.
inline constexpr uint16_t kOverflow = 256;   // ints whose result was none
inline constexpr uint16_t kReached = 512;    // it ran
inline constexpr uint16_t kStranger = 1024;  // a value that the place is not fast for

using Seen = std::atomic<uint16_t>;
// A plain load where there is nothing new.
inline void note(Seen& at, unsigned bits) {
  uint16_t old = at.load(std::memory_order_relaxed);
  if ((old & bits) != bits) at.store(static_cast<uint16_t>(old | bits), std::memory_order_relaxed);
}

// The shapes that a field access met, and where the field was.
struct FieldCache {
  static constexpr uint32_t kSize = 4;
  struct Entry {
    Shape* shape = nullptr;
    uint32_t slot = 0;
    Shape* next = nullptr;  // the shape afterwards, when a store adds the field; else null
  };

  String* name = nullptr;
  Entry entries[kSize] = {};
  std::atomic<uint32_t> count = 0;  // later entries are not valid yet; > kSize: there were more

  void remember(Entry e);
};

// The functions that a call met.
struct CallCache {
  std::atomic<Closure*> first = nullptr;
  std::atomic<bool> many_closures = false, many_protos = false;

  void remember(Closure* f);
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
  std::vector<Capture> captures = {};
  Seen params_seen[kMaxParams] = {};

  // With a runtime (tiers.h): what calls go to, and where its loops count down.
  struct Vm* vm = nullptr;
  const void* entry = nullptr;
  uptier::LoopCountdown loop_countdown = {};
};

struct Code {
  std::vector<Instr> instrs;
  std::vector<int> lines;  // by instruction
  std::vector<Seen> seen;  // by instruction
  std::vector<Val> constants;
  std::vector<std::unique_ptr<Proto>> protos;  // the first is the top level
  std::vector<Shape*> shapes;                  // of literals
  std::vector<std::unique_ptr<FieldCache>> fields;
  std::vector<std::unique_ptr<CallCache>> calls;
  size_t globals = 0;
};

// Compiles a program. Returns the error in it, with its line, or nothing.
std::string compile(std::string_view source, Heap& heap, Code& code);

}  // namespace calc
