// The accumulator machine: one loop with one switch.
//
// A frame has a function's parameters, then its other locals, then the values that it has pushed. Arrays lie in one
// heap, their length before them, and are freed all at once.
#ifndef UPTIER_EXAMPLES_EXPRVM_MACHINE_H
#define UPTIER_EXAMPLES_EXPRVM_MACHINE_H

#include <math.h>

#include "compiler.h"

enum { kHeapSlots = 1 << 18, kStackSlots = 1 << 15, kMostFrames = 1024 };

typedef union Slot {
  int64_t i;
  double d;
} Slot;

typedef struct Frame {
  const uint8_t* pc;
  Slot* base;
} Frame;

typedef struct Machine {
  Slot heap[kHeapSlots];
  Slot stack[kStackSlots];
  Frame frames[kMostFrames];
  uint32_t heap_top;
  uint64_t calls;
} Machine;

static NOINLINE int64_t new_array(Machine* m, int64_t length, int is_float) {
  if (length < 0 || length >= kHeapSlots - (int64_t)m->heap_top) fail("the heap is full");
  uint32_t at = m->heap_top;
  m->heap_top += (uint32_t)length + 1;
  m->heap[at].i = length;
  for (int64_t k = 1; k <= length; ++k) {
    if (is_float) {
      m->heap[at + k].d = 0;
    } else {
      m->heap[at + k].i = 0;
    }
  }
  return at;
}

static inline Slot* element(Machine* m, int64_t array, int64_t index) {
  Slot* header = &m->heap[array];
  if ((uint64_t)index >= (uint64_t)header->i) fail("an index is out of range");
  return header + 1 + index;
}

static NOINLINE int64_t divided(int64_t a, int64_t b) {
  if (b == 0) fail("division by zero");
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static NOINLINE int64_t rest_of(int64_t a, int64_t b) {
  if (b == 0) fail("division by zero");
  return b == -1 ? 0 : a % b;
}

static NOINLINE int64_t to_int(double x) {
  if (!(x > -9e18 && x < 9e18)) fail("a number is too large");
  return (int64_t)x;
}

static inline int64_t wrap(uint64_t x) { return (int64_t)x; }

// The three forms of an operation on integers: `y` is a local or a constant, or the left operand
// comes from the stack.
#define INTEGER(name, expression)     \
  case k##name##Local: {              \
    int64_t x = a, y = base[*pc++].i; \
    a = (expression);                 \
    break;                            \
  }                                   \
  case k##name##Stack: {              \
    int64_t x = (--sp)->i, y = a;     \
    a = (expression);                 \
    break;                            \
  }                                   \
  case k##name##Const: {              \
    int64_t x = a, y = (int8_t)*pc++; \
    a = (expression);                 \
    break;                            \
  }
#define UNLESS(name, op)                                                                    \
  case kUnless##name##Local: pc += 3 + (a op base[pc[0]].i ? 0 : read_wide(pc + 1)); break; \
  case kUnless##name##Stack:                                                                \
    --sp;                                                                                   \
    pc += 2 + (sp->i op a ? 0 : read_wide(pc));                                             \
    break;                                                                                  \
  case kUnless##name##Const:                                                                \
    pc += 3 + (a op(int8_t) pc[0] ? 0 : read_wide(pc + 1));                                 \
    break;
#define FLOAT(name, expression)      \
  case kF##name##Local: {            \
    double x = f, y = base[*pc++].d; \
    f = (expression);                \
    break;                           \
  }                                  \
  case kF##name##Stack: {            \
    double x = (--sp)->d, y = f;     \
    f = (expression);                \
    break;                           \
  }
#define FLOAT_COMPARISON(name, op)                                                           \
  case kIsF##name##Local: a = f op base[*pc++].d; break;                                     \
  case kIsF##name##Stack: a = (--sp)->d op f; break;                                         \
  case kUnlessF##name##Local: pc += 3 + (f op base[pc[0]].d ? 0 : read_wide(pc + 1)); break; \
  case kUnlessF##name##Stack:                                                                \
    --sp;                                                                                    \
    pc += 2 + (sp->d op f ? 0 : read_wide(pc));                                              \
    break;
#define SHORT_LOAD(n)                  \
  case kLoad##n: a = base[n].i; break; \
  case kStore##n:                      \
    base[n].i = a;                     \
    break;
#define SHORT_FLOAD(n)                  \
  case kFLoad##n: f = base[n].d; break; \
  case kFStore##n: base[n].d = f; break;

// Calls a function without parameters but one, and returns its result.
static NOINLINE int64_t run(Machine* m, const Program* program, uint32_t function,
                            int64_t argument) {
  const Function* functions = program->functions;
  const uint8_t* pc = program->code + functions[function].code;
  Slot* base = m->stack;
  Slot* sp = base + functions[function].locals;
  uint32_t depth = 0;
  int64_t a = 0;
  double f = 0;
  base[0].i = argument;
  for (;;) {
    switch ((Opcode)*pc++) {
      case kZero: a = 0; break;
      case kOne: a = 1; break;
      case kConst8: a = (int8_t)*pc++; break;
      case kConst16: a = read_wide(pc), pc += 2; break;
      case kConstant: a = program->constants[*pc++]; break;
      case kLoad: a = base[*pc++].i; break;
      case kStore:
        base[*pc++].i = a;
        break;
        SHORT_LOAD(0)
        SHORT_LOAD(1)
        SHORT_LOAD(2)
        SHORT_LOAD(3)
        SHORT_LOAD(4)
        SHORT_LOAD(5)
        SHORT_LOAD(6)
        SHORT_LOAD(7)
      case kPush: (sp++)->i = a; break;
      case kPushLocal: *sp++ = base[*pc++]; break;
      case kMove: base[pc[1]] = base[pc[0]], pc += 2; break;
      case kIncrement: base[*pc].i = wrap((uint64_t)base[*pc].i + 1), ++pc; break;
      case kDecrement: base[*pc].i = wrap((uint64_t)base[*pc].i - 1), ++pc; break;
      case kAddTo:
        base[*pc].i = wrap((uint64_t)base[*pc].i + (uint64_t)a), ++pc;
        break;

        INTEGER(Add, wrap((uint64_t)x + (uint64_t)y))
        INTEGER(Sub, wrap((uint64_t)x - (uint64_t)y))
        INTEGER(Mul, wrap((uint64_t)x * (uint64_t)y))
        INTEGER(Div, divided(x, y))
        INTEGER(Rem, rest_of(x, y))
        INTEGER(And, x & y)
        INTEGER(Or, x | y)
        INTEGER(Xor, x ^ y)
        INTEGER(Shl, wrap((uint64_t)x << (y & 63)))
        INTEGER(Shr, wrap((uint64_t)x >> (y & 63)))
        INTEGER(Sar, x >> (y & 63))
        INTEGER(Min, x < y ? x : y)
        INTEGER(Max, x > y ? x : y)
      case kNegate: a = wrap(0 - (uint64_t)a); break;
      case kComplement: a = ~a; break;
      case kNot: a = a == 0; break;
      case kTruth: a = a != 0; break;
      case kAbsolute: a = a < 0 ? wrap(0 - (uint64_t)a) : a; break;
      case kOnes: a = __builtin_popcountll((uint64_t)a); break;
      case kZeros:
        a = a == 0 ? 64 : __builtin_ctzll((uint64_t)a);
        break;

        INTEGER(IsEq, x == y)
        INTEGER(IsNe, x != y)
        INTEGER(IsLt, x < y)
        INTEGER(IsLe, x <= y)
        INTEGER(IsGt, x > y)
        INTEGER(IsGe, x >= y)
        UNLESS(Eq, ==)
        UNLESS(Ne, !=)
        UNLESS(Lt, <)
        UNLESS(Le, <=)
        UNLESS(Gt, >)
        UNLESS(Ge, >=)
      case kJump:
      case kJumpBack: pc += 2 + read_wide(pc); break;
      case kJumpIf: pc += 2 + (a != 0 ? read_wide(pc) : 0); break;
      case kJumpIfNot: pc += 2 + (a == 0 ? read_wide(pc) : 0); break;
      case kLoopBelow: pc += 4 + (++base[pc[0]].i < base[pc[1]].i ? read_wide(pc + 2) : 0); break;

      case kFZero: f = 0; break;
      case kFOne: f = 1; break;
      case kFConstant: f = program->fractions[*pc++]; break;
      case kFLoad: f = base[*pc++].d; break;
      case kFStore:
        base[*pc++].d = f;
        break;
        SHORT_FLOAD(0)
        SHORT_FLOAD(1)
        SHORT_FLOAD(2)
        SHORT_FLOAD(3)
        SHORT_FLOAD(4)
        SHORT_FLOAD(5)
      case kFPush: (sp++)->d = f; break;
      case kFPushLocal: *sp++ = base[*pc++]; break;
      case kFAddTo:
        base[*pc++].d += f;
        break;
        FLOAT(Add, x + y)
        FLOAT(Sub, x - y)
        FLOAT(Mul, x * y)
        FLOAT(Div, x / y)
        FLOAT(Min, x < y ? x : y)
        FLOAT(Max, x > y ? x : y)
      case kFNegate: f = -f; break;
      case kFAbsolute: f = fabs(f); break;
      case kFRoot: f = sqrt(f); break;
      case kFFloor: f = floor(f); break;
      case kToFloat: f = (double)a; break;
      case kToInt:
        a = to_int(f);
        break;
        FLOAT_COMPARISON(Eq, ==)
        FLOAT_COMPARISON(Ne, !=)
        FLOAT_COMPARISON(Lt, <)
        FLOAT_COMPARISON(Le, <=)
        FLOAT_COMPARISON(Gt, >)
        FLOAT_COMPARISON(Ge, >=)

      case kNewInts: a = new_array(m, a, 0); break;
      case kNewFloats: a = new_array(m, a, 1); break;
      case kLength: a = m->heap[a].i; break;
      case kGet: a = element(m, base[*pc++].i, a)->i; break;
      case kGetAt: a = element(m, base[pc[0]].i, base[pc[1]].i)->i, pc += 2; break;
      case kSet: --sp, element(m, base[*pc++].i, sp->i)->i = a; break;
      case kSetAt: element(m, base[pc[0]].i, base[pc[1]].i)->i = a, pc += 2; break;
      case kAddToElement: {
        Slot* s = element(m, base[*pc++].i, (--sp)->i);
        s->i = wrap((uint64_t)s->i + (uint64_t)a);
        break;
      }
      case kFGet: f = element(m, base[*pc++].i, a)->d; break;
      case kFGetAt: f = element(m, base[pc[0]].i, base[pc[1]].i)->d, pc += 2; break;
      case kFSet: --sp, element(m, base[*pc++].i, sp->i)->d = f; break;
      case kFSetAt: element(m, base[pc[0]].i, base[pc[1]].i)->d = f, pc += 2; break;
      case kFAddToElement: --sp, element(m, base[*pc++].i, sp->i)->d += f; break;

      case kCall: {
        const Function* callee = &functions[*pc++];
        if (depth == kMostFrames) fail("too many calls");
        m->frames[depth++] = (Frame){pc, base};
        base = sp - callee->parameters;
        sp = base + callee->locals;
        if (sp - m->stack > kStackSlots - 64) fail("the stack is full");
        pc = program->code + callee->code;
        ++m->calls;
        break;
      }
      case kReturn:
      case kFReturn:
        if (depth == 0) return a;
        sp = base;
        pc = m->frames[--depth].pc;
        base = m->frames[depth].base;
        break;
      case kOpcodes: break;
    }
  }
}

#endif  // UPTIER_EXAMPLES_EXPRVM_MACHINE_H
