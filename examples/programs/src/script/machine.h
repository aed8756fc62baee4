// The script machine: one loop with one switch. A script's calls of script functions stay in the
// loop; functions of the library that call a script back enter it again.
#ifndef UPTIER_EXAMPLES_SCRIPT_MACHINE_H
#define UPTIER_EXAMPLES_SCRIPT_MACHINE_H

#include "opcodes.h"
#include "value.h"

enum { kMostFunctions = 64, kMostGlobals = 32, kMostConstants = 256 };
enum { kMostCode = 16384, kStackWords = 16384, kMostFrames = 1024, kMostLocals = 32 };

typedef struct Function {
  uint32_t code;  // where it begins
  uint8_t parameters;
  uint8_t locals;  // parameters included
} Function;

typedef struct Frame {
  const uint8_t* pc;
  Value* base;
} Frame;

typedef struct Machine {
  Function functions[kMostFunctions];
  Value constants[kMostConstants];
  Value globals[kMostGlobals];
  uint8_t code[kMostCode];
  Value stack[kStackWords];
  Value* top;  // of the stack, while no loop runs
  Frame frames[kMostFrames];
  uint32_t depth;
  uint64_t callbacks;
} Machine;

static Value run(Machine* m, uint32_t function, const Value* arguments, uint32_t count);

// The library: functions that call back.

typedef enum { kSort, kEach, kMapped, kFolded, kCountIf, kNatives } Native;

static uint32_t function_of(Value v) {
  if (!is_tagged(v, TAG_FUNCTION)) fail("a function was expected");
  return (uint32_t)v;
}

static Value call_back(Machine* m, uint32_t function, Value a, Value b, uint32_t count) {
  Value arguments[2] = {a, b};
  ++m->callbacks;
  return run(m, function, arguments, count);
}

static int comes_first(Machine* m, uint32_t less, Value a, Value b) {
  return int_of(call_back(m, less, a, b, 2)) <= 0;
}

// Merges the sorted halves [from, middle) and [middle, to) of `a`, by way of `room`.
static void merge(Machine* m, uint32_t less, uint32_t a, uint32_t room, uint32_t from,
                  uint32_t middle, uint32_t to) {
  uint32_t i = from, j = middle, k = from;
  while (i < middle && j < to) {
    heap[room + k++] =
        comes_first(m, less, heap[a + i], heap[a + j]) ? heap[a + i++] : heap[a + j++];
  }
  while (i < middle) heap[room + k++] = heap[a + i++];
  while (j < to) heap[room + k++] = heap[a + j++];
  for (k = from; k < to; ++k) heap[a + k] = heap[room + k];
}

static NOINLINE void sort(Machine* m, Value array, uint32_t less) {
  uint32_t at = object_of(array, kArray), size = size_at(at), top = heap_top;
  uint32_t room = allocate(size), elements = elements_at(at);
  for (uint32_t width = 1; width < size; width *= 2) {
    for (uint32_t from = 0; from + width < size; from += 2 * width) {
      uint32_t to = from + 2 * width < size ? from + 2 * width : size;
      merge(m, less, elements, room, from, from + width, to);
    }
  }
  heap_top = top;  // comparisons allocate nothing that lives on
}

static NOINLINE Value call_native(Machine* m, Native native, const Value* arguments) {
  Value array = arguments[0], sum = native == kFolded ? arguments[2] : NULL_VALUE;
  uint32_t f = function_of(arguments[1]), at = object_of(array, kArray);
  int32_t found = 0;
  if (native == kSort) return sort(m, array, f), array;
  Value result = native == kMapped ? new_array(size_at(at)) : NULL_VALUE;
  for (uint32_t i = 0; i < size_at(at); ++i) {
    Value element = heap[elements_at(at) + i];
    switch (native) {
      case kEach: call_back(m, f, element, from_int((int32_t)i), 2); break;
      case kMapped: push_value((uint32_t)result, call_back(m, f, element, NULL_VALUE, 1)); break;
      case kFolded: sum = call_back(m, f, sum, element, 2); break;
      default: found += is_true(call_back(m, f, element, NULL_VALUE, 1)); break;
    }
  }
  return native == kMapped ? result : native == kFolded ? sum : from_int(found);
}

// Operations that the loop runs rarely, or on values that are not integers.

static NOINLINE Value add_slowly(Value a, Value b) {
  if (is_kind(a, kString)) return concatenate(a, text_of(b));
  return from_double(number_of(a) + number_of(b));
}

static NOINLINE Value remainder_of(Value a, Value b) {
  if (both_ints(a, b)) {
    int32_t divisor = as_int(b);
    if (divisor == 0) fail("division by zero");
    return from_int(divisor == -1 ? 0 : as_int(a) % divisor);
  }
  return from_double(fmod(number_of(a), number_of(b)));
}

static NOINLINE Value divide_ints(Value a, Value b) {
  int64_t divisor = int_of(b);
  if (divisor == 0) fail("division by zero");
  return from_wide(int_of(a) / divisor);
}

static NOINLINE int orders(Value a, Value b) {
  if (is_kind(a, kString)) return compare_strings(a, b);
  double x = number_of(a), y = number_of(b);
  if (x != x || y != y) fail("what is not a number has no order");
  return x < y ? -1 : x > y;
}

static NOINLINE Value filled(Value size, Value with) {
  int32_t n = int_of(size);
  if (n < 0) fail("an array of a negative size");
  Value array = new_array((uint32_t)n);
  for (int32_t i = 0; i < n; ++i) push_value((uint32_t)array, with);
  return array;
}

static NOINLINE Value new_record(uint32_t shape, uint32_t size, const Value* fields) {
  uint32_t at = allocate(1 + size);
  set_header(at, kRecord, shape, size);
  memcpy(&heap[at + 1], fields, size * sizeof *fields);
  return TAGGED(TAG_OBJECT, at);
}

static NOINLINE Value least_or_most(Value a, Value b, int most) {
  return (number_of(a) > number_of(b)) == most ? a : b;
}

static inline int32_t operand16(const uint8_t* pc) { return (int16_t)(pc[0] | pc[1] << 8); }

#define ARITHMETIC(name, op)                                                                \
  case k##name:                                                                             \
    --sp;                                                                                   \
    sp[-1] = both_ints(sp[-1], sp[0]) ? from_wide((int64_t)as_int(sp[-1]) op as_int(sp[0])) \
                                      : from_double(number_of(sp[-1]) op number_of(sp[0])); \
    break;
#define BITS(name, expression)                                          \
  case k##name: {                                                       \
    --sp;                                                               \
    uint32_t x = (uint32_t)int_of(sp[-1]), y = (uint32_t)int_of(sp[0]); \
    sp[-1] = from_int((int32_t)(expression));                           \
    break;                                                              \
  }
#define BITS_INT(name, expression)                    \
  case k##name: {                                     \
    uint32_t x = (uint32_t)int_of(sp[-1]), y = *pc++; \
    sp[-1] = from_int((int32_t)(expression));         \
    break;                                            \
  }
#define HOLDS(op) \
  (both_ints(sp[0], sp[1]) ? as_int(sp[0]) op as_int(sp[1]) : orders(sp[0], sp[1]) op 0)
#define ORDER(name, op)                        \
  case k##name:                                \
    sp -= 2;                                   \
    sp[0] = from_bool(HOLDS(op)), ++sp;        \
    break;                                     \
  case kUnless##name:                          \
    sp -= 2;                                   \
    pc += 2 + (HOLDS(op) ? 0 : operand16(pc)); \
    break;
#define UNLESS_INT(name, op)                                                                      \
  case kUnless##name##Int:                                                                        \
    --sp;                                                                                         \
    pc +=                                                                                         \
        3 + ((is_int(sp[0]) ? as_int(sp[0]) op(int8_t) pc[0] : number_of(sp[0]) op(int8_t) pc[0]) \
                 ? 0                                                                              \
                 : operand16(pc + 1));                                                            \
    break;
#define LOCAL(n)     \
  case kGet##n:      \
    *sp++ = base[n]; \
    break;
#define SET_LOCAL(n) \
  case kSet##n:      \
    base[n] = *--sp; \
    break;
#define ENTER(function, count)                                                          \
  do {                                                                                  \
    const Function* f_ = &m->functions[function];                                       \
    if (m->depth == kMostFrames) fail("too many calls");                                \
    m->frames[m->depth++] = (Frame){pc, base};                                          \
    base = sp - (count);                                                                \
    if (base - m->stack > kStackWords - 2 * kMostLocals) fail("the stack is full");     \
    for (sp = base + f_->locals; count < f_->locals; ++count) base[count] = NULL_VALUE; \
    pc = m->code + f_->code;                                                            \
  } while (0)
#define LEAVE(result)                 \
  do {                                \
    Value result_ = (result);         \
    Frame f_ = m->frames[--m->depth]; \
    sp = base;                        \
    if (f_.pc == NULL) {              \
      m->top = sp;                    \
      return result_;                 \
    }                                 \
    *sp++ = result_;                  \
    pc = f_.pc;                       \
    base = f_.base;                   \
  } while (0)

// Calls a function and returns its result.
static NOINLINE Value run(Machine* m, uint32_t function, const Value* arguments, uint32_t count) {
  const uint8_t* pc = NULL;
  Value* base = m->top;
  Value* sp = base;
  if (m->functions[function].parameters != count) fail("wrong number of arguments");
  for (uint32_t i = 0; i < count; ++i) *sp++ = arguments[i];
  ENTER(function, count);
  for (;;) {
    switch ((Opcode)*pc++) {
      case kNull: *sp++ = NULL_VALUE; break;
      case kTrue: *sp++ = TRUE_VALUE; break;
      case kFalse: *sp++ = FALSE_VALUE; break;
      case kZero: *sp++ = from_int(0); break;
      case kOne: *sp++ = from_int(1); break;
      case kInt8: *sp++ = from_int((int8_t)*pc++); break;
      case kInt16: *sp++ = from_int(operand16(pc)), pc += 2; break;
      case kConstant: *sp++ = m->constants[operand16(pc)], pc += 2; break;
      case kFunction: *sp++ = TAGGED(TAG_FUNCTION, *pc++); break;

      case kPop: --sp; break;
      case kDup: sp[0] = sp[-1], ++sp; break;
      case kDupPair: sp[0] = sp[-2], sp[1] = sp[-1], sp += 2; break;

      case kGet:
        *sp++ = base[*pc++];
        break;
        LOCAL(0);
        LOCAL(1);
        LOCAL(2);
        LOCAL(3);
        LOCAL(4);
        LOCAL(5);
        LOCAL(6);
        LOCAL(7);
      case kGetPair: sp[0] = base[pc[0]], sp[1] = base[pc[1]], sp += 2, pc += 2; break;
      case kSet:
        base[*pc++] = *--sp;
        break;
        SET_LOCAL(0);
        SET_LOCAL(1);
        SET_LOCAL(2);
        SET_LOCAL(3);
        SET_LOCAL(4);
        SET_LOCAL(5);
      case kInc: {
        Value* local = &base[*pc++];
        *local = is_int(*local) ? from_wide((int64_t)as_int(*local) + 1)
                                : from_double(number_of(*local) + 1);
        break;
      }
      case kDec: {
        Value* local = &base[*pc++];
        *local = is_int(*local) ? from_wide((int64_t)as_int(*local) - 1)
                                : from_double(number_of(*local) - 1);
        break;
      }
      case kAddTo: {
        Value* local = &base[*pc++];
        --sp;
        *local = both_ints(*local, *sp) ? from_wide((int64_t)as_int(*local) + as_int(*sp))
                                        : add_slowly(*local, *sp);
        break;
      }
      case kMove: base[pc[1]] = base[pc[0]], pc += 2; break;

      case kGetGlobal: *sp++ = m->globals[*pc++]; break;
      case kSetGlobal: m->globals[*pc++] = *--sp; break;
      case kIncGlobal: {
        Value* global = &m->globals[*pc++];
        *global = from_wide((int64_t)int_of(*global) + 1);
        break;
      }

      case kAdd:
        --sp;
        sp[-1] = both_ints(sp[-1], sp[0]) ? from_wide((int64_t)as_int(sp[-1]) + as_int(sp[0]))
                 : is_double(sp[-1]) && is_double(sp[0])
                     ? from_double(as_double(sp[-1]) + as_double(sp[0]))
                     : add_slowly(sp[-1], sp[0]);
        break;
        ARITHMETIC(Sub, -);
        ARITHMETIC(Mul, *);
      case kDiv: --sp, sp[-1] = from_double(number_of(sp[-1]) / number_of(sp[0])); break;
      case kRem: --sp, sp[-1] = remainder_of(sp[-1], sp[0]); break;
      case kNeg:
        sp[-1] =
            is_int(sp[-1]) ? from_wide(-(int64_t)as_int(sp[-1])) : from_double(-number_of(sp[-1]));
        break;
      case kIntDiv:
        --sp, sp[-1] = divide_ints(sp[-1], sp[0]);
        break;
        BITS(IntMul, x * y);
        BITS(And, x & y);
        BITS(Or, x | y);
        BITS(Xor, x ^ y);
        BITS(Shl, x << (y & 31));
        BITS(Shr, x >> (y & 31));
        BITS(Sar, (uint32_t)((int32_t)x >> (y & 31)));
      case kComplement: sp[-1] = from_int(~int_of(sp[-1])); break;
      case kNot: sp[-1] = from_bool(!is_true(sp[-1])); break;
      case kAddInt: {
        int8_t y = (int8_t)*pc++;
        sp[-1] = is_int(sp[-1]) ? from_wide((int64_t)as_int(sp[-1]) + y)
                                : add_slowly(sp[-1], from_int(y));
        break;
      }
      case kSubInt: {
        int8_t y = (int8_t)*pc++;
        sp[-1] = is_int(sp[-1]) ? from_wide((int64_t)as_int(sp[-1]) - y)
                                : from_double(number_of(sp[-1]) - y);
        break;
      }
      case kMulInt: {
        int8_t y = (int8_t)*pc++;
        sp[-1] = is_int(sp[-1]) ? from_wide((int64_t)as_int(sp[-1]) * y)
                                : from_double(number_of(sp[-1]) * y);
        break;
      }
        BITS_INT(AndInt, x & y);
        BITS_INT(ShlInt, x << (y & 31));
        BITS_INT(ShrInt, x >> (y & 31));
      case kRemInt: sp[-1] = remainder_of(sp[-1], from_int((int8_t)*pc++)); break;
      case kSqrt: sp[-1] = from_double(sqrt(number_of(sp[-1]))); break;
      case kFloor: sp[-1] = from_double(floor(number_of(sp[-1]))); break;
      case kAbs: sp[-1] = number_of(sp[-1]) < 0 ? from_double(-number_of(sp[-1])) : sp[-1]; break;
      case kMin: --sp, sp[-1] = least_or_most(sp[-1], sp[0], 0); break;
      case kMax: --sp, sp[-1] = least_or_most(sp[-1], sp[0], 1); break;
      case kToInt: sp[-1] = from_int(int_of(sp[-1])); break;
      case kToFloat: sp[-1] = from_double(number_of(sp[-1])); break;

      case kEq: --sp, sp[-1] = from_bool(are_equal(sp[-1], sp[0])); break;
      case kNe: --sp, sp[-1] = from_bool(!are_equal(sp[-1], sp[0])); break;
      case kUnlessEq: sp -= 2, pc += 2 + (are_equal(sp[0], sp[1]) ? 0 : operand16(pc)); break;
      case kUnlessNe:
        sp -= 2, pc += 2 + (are_equal(sp[0], sp[1]) ? operand16(pc) : 0);
        break;
        ORDER(Lt, <);
        ORDER(Le, <=);
        ORDER(Gt, >);
        ORDER(Ge, >=);
        UNLESS_INT(Eq, ==);
        UNLESS_INT(Lt, <);
        UNLESS_INT(Ge, >=);
      case kJump:
      case kJumpBack: pc += 2 + operand16(pc); break;
      case kJumpIf: --sp, pc += 2 + (is_true(*sp) ? operand16(pc) : 0); break;
      case kJumpIfNot: --sp, pc += 2 + (is_true(*sp) ? 0 : operand16(pc)); break;
      case kJumpAnd:
        if (is_true(sp[-1])) {
          --sp, pc += 2;
        } else {
          pc += 2 + operand16(pc);
        }
        break;
      case kJumpOr:
        if (is_true(sp[-1])) {
          pc += 2 + operand16(pc);
        } else {
          --sp, pc += 2;
        }
        break;

      case kCall: {
        uint32_t passed = *pc++, callee = function_of(sp[-1 - (int32_t)passed]);
        if (m->functions[callee].parameters != passed) fail("wrong number of arguments");
        // The arguments take the place of the function.
        for (uint32_t i = passed + 1; i > 1; --i) sp[-(int32_t)i] = sp[1 - (int32_t)i];
        --sp;
        ENTER(callee, passed);
        break;
      }
      case kCallKnown: {
        uint32_t callee = pc[0], passed = pc[1];
        pc += 2;
        ENTER(callee, passed);
        break;
      }
      case kCallNative: {
        m->top = sp;
        Value result = call_native(m, (Native)pc[0], sp - pc[1]);
        sp -= pc[1];
        *sp++ = result;
        pc += 2;
        break;
      }
      case kReturn: LEAVE(sp[-1]); break;
      case kReturnNull: LEAVE(NULL_VALUE); break;
      case kReturnLocal: LEAVE(base[*pc]); break;

      case kNewArray: {
        uint32_t size = *pc++;
        Value array = new_array(size);
        sp -= size;
        for (uint32_t i = 0; i < size; ++i) push_value((uint32_t)array, sp[i]);
        *sp++ = array;
        break;
      }
      case kFilled: --sp, sp[-1] = filled(sp[-1], sp[0]); break;
      case kIndex:
        --sp;
        sp[-1] = is_kind(sp[-1], kArray) ? *element_of(sp[-1], sp[0]) : index_slowly(sp[-1], sp[0]);
        break;
      case kIndexLocals: {
        Value object = base[pc[0]], key = base[pc[1]];
        pc += 2;
        *sp++ = is_kind(object, kArray) ? *element_of(object, key) : index_slowly(object, key);
        break;
      }
      case kStore:
        sp -= 3;
        if (is_kind(sp[0], kArray)) {
          *element_of(sp[0], sp[1]) = sp[2];
        } else {
          store_slowly(sp[0], sp[1], sp[2]);
        }
        break;
      case kLength:
        if (!is_tagged(sp[-1], TAG_OBJECT)) fail("an object was expected");
        sp[-1] = from_int((int32_t)size_at((uint32_t)sp[-1]));
        break;
      case kPush: --sp, push_value(object_of(sp[-1], kArray), sp[0]); break;
      case kPopLast: {
        uint32_t at = object_of(sp[-1], kArray);
        if (size_at(at) == 0) fail("nothing to pop");
        --heap[at];
        sp[-1] = heap[elements_at(at) + size_at(at)];
        break;
      }
      case kSwap: {
        sp -= 2;
        Value* a = element_of(sp[-1], sp[0]);
        Value* b = element_of(sp[-1], sp[1]);
        Value kept = *a;
        *a = *b;
        *b = kept;
        break;
      }
      case kNewMap: *sp++ = new_map(); break;
      case kHas:
        --sp;
        sp[-1] = from_bool(find_bucket(object_of(sp[-1], kMap), sp[0])[0] != NULL_VALUE);
        break;
      case kNewRecord: sp -= pc[1], *sp = new_record(pc[0], pc[1], sp), ++sp, pc += 2; break;
      case kGetField: sp[-1] = *field_of(sp[-1], *pc++); break;
      case kFieldOfLocal: *sp++ = *field_of(base[pc[0]], pc[1]), pc += 2; break;
      case kSetField: sp -= 2, *field_of(sp[0], *pc++) = sp[1]; break;

      case kCode: {
        --sp;
        uint32_t at = object_of(sp[-1], kString);
        if (!is_int(sp[0]) || (uint32_t)sp[0] >= size_at(at)) fail("no such character");
        sp[-1] = from_int((uint8_t)bytes_at(at)[(uint32_t)sp[0]]);
        break;
      }
      case kCharacter: {
        char c = (char)int_of(sp[-1]);
        sp[-1] = string_from(&c, 1);
        break;
      }
      case kText: sp[-1] = text_of(sp[-1]); break;
      case kSubstring: sp -= 2, sp[-1] = substring(sp[-1], int_of(sp[0]), int_of(sp[1])); break;

      case kMark: *sp++ = from_int((int32_t)heap_top); break;
      case kRelease: {
        uint32_t to = (uint32_t)int_of(sp[-1]);
        if (to == 0 || to > heap_top) fail("no such mark");
        heap_top = to;
        sp[-1] = NULL_VALUE;
        break;
      }
      case kFold: --sp, sp[-1] = from_int((int32_t)(fold(sp[-1], sp[0]) & 0x7fffffff)); break;
      case kOpcodes: fail("no such opcode");
    }
  }
}

#endif  // UPTIER_EXAMPLES_SCRIPT_MACHINE_H
