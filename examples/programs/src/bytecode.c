// bytecode: an interpreter for a small stack machine, running a sieve, a recursive Fibonacci
// function and a Collatz search that are assembled from text first.
// Exercises one function with a big switch (br_table) in a loop, where every jump depends on
// memory; a call of it lasts for many thousand iterations.
// Size: number of rounds, each of which runs the three programs.
#include <string.h>

#include "program.h"

// Operation, name, number of immediate words.
#define OPS(X)                                                            \
  X(Halt, "halt", 0) /* result is the top of the stack */                 \
  X(Push, "push", 1) /* immediate */                                      \
  X(Dup, "dup", 0)                                                        \
  X(Get, "get", 1)     /* local */                                        \
  X(Set, "set", 1)     /* local */                                        \
  X(Inc, "inc", 1)     /* local */                                        \
  X(Load, "load", 0)   /* address -> byte */                              \
  X(Store, "store", 0) /* address byte -> */                              \
  X(Add, "add", 0)                                                        \
  X(Sub, "sub", 0)                                                        \
  X(Mul, "mul", 0)                                                        \
  X(Div, "div", 0)                                                        \
  X(Rem, "rem", 0)                                                        \
  X(And, "and", 0)                                                        \
  X(Or, "or", 0)                                                          \
  X(Xor, "xor", 0)                                                        \
  X(Shl, "shl", 0)                                                        \
  X(Shr, "shr", 0)                                                        \
  X(Eq, "eq", 0)                                                          \
  X(Ne, "ne", 0)                                                          \
  X(Lt, "lt", 0)                                                          \
  X(Not, "not", 0)                                                        \
  X(Jump, "jump", 1)     /* target */                                     \
  X(If, "if", 1)         /* target, taken when the popped top is not 0 */ \
  X(Call, "call", 2)     /* target, number of arguments */                \
  X(Return, "return", 0) /* to the caller, with the top of the stack */

#define ENUMERATE(op, name, words) k##op,
#define DESCRIBE(op, name, words) {name, words},
typedef enum { OPS(ENUMERATE) kOps } Op;
static const struct {
  const char* name;
  int words;
} kDescription[kOps] = {OPS(DESCRIBE)};

enum {
  kStackSize = 4096,
  kLocals = 6,
  kMaxCode = 160,
  kMaxLabels = 16,
  kNameSize = 12,
  kMemorySize = 2048
};

typedef struct Machine {
  int32_t code[kMaxCode];
  int32_t stack[kStackSize];
  uint8_t* memory;
  int32_t result;  // of the last run
  uint64_t executed;
} Machine;

typedef struct Label {
  char name[kNameSize];
  int32_t pc;
} Label;

// Local 0 is the limit; the result is the number of primes below it.
static const char kSieve[] =
    "push 2 set 1 "
    ":outer get 1 get 0 lt not if @end "
    "  get 1 load if @next "
    "  inc 2 get 1 dup add set 3 "
    "  :inner get 3 get 0 lt not if @next "
    "    get 3 push 1 store get 3 get 1 add set 3 jump @inner "
    "  :next inc 1 jump @outer "
    ":end get 2 halt";

// Local 0 is n; the result is the n-th Fibonacci number.
static const char kFibonacci[] =
    "get 0 call @fib 1 halt "
    ":fib get 0 push 2 lt if @small "
    "  get 0 push 1 sub call @fib 1 get 0 push 2 sub call @fib 1 add return "
    "  :small get 0 return";

// Local 0 is the limit; the result sums a hash of each start's sequence length.
static const char kCollatz[] =
    "push 1 set 1 "
    ":outer get 1 get 0 lt not if @end "
    "  get 1 set 2 push 0 set 3 "
    "  :inner get 2 push 1 eq if @done "
    "    inc 3 get 2 push 1 and if @odd "
    "    get 2 push 1 shr set 2 jump @inner "
    "    :odd get 2 push 3 mul push 1 add set 2 jump @inner "
    "  :done get 4 get 3 get 3 mul get 1 xor add push 1000003 rem set 4 "
    "  inc 1 jump @outer "
    ":end get 4 halt";

static int32_t value_of(const char* token, const Label* labels, int count) {
  if (token[0] != '@') return (int32_t)strtol(token, NULL, 10);
  for (int i = 0; i < count; ++i) {
    if (strcmp(labels[i].name, token + 1) == 0) return labels[i].pc;
  }
  return 0;  // not yet defined: the first pass does not care
}

static Op op_of(const char* token) {
  for (int op = 0; op < kOps; ++op) {
    if (strcmp(kDescription[op].name, token) == 0) return (Op)op;
  }
  fprintf(stderr, "bytecode: unknown operation %s\n", token);
  exit(1);
}

static int next_token(const char** text, char* token) {
  *text += strspn(*text, " ");
  size_t size = strcspn(*text, " ");
  if (size >= kNameSize) exit(1);
  memcpy(token, *text, size);
  token[size] = '\0';
  *text += size;
  return size > 0;
}

// Runs over the text once, and defines labels as it meets them; the second pass knows them all.
static void pass(const char* text, int32_t* code, Label* labels, int* count) {
  char token[kNameSize];
  int words = 0;
  int32_t pc = 0;
  while (next_token(&text, token)) {
    if (token[0] == ':') {
      strcpy(labels[*count].name, token + 1);
      labels[(*count)++].pc = pc;
    } else if (words > 0) {
      code[pc++] = value_of(token, labels, *count);
      --words;
    } else {
      Op op = op_of(token);
      code[pc++] = (int32_t)op;
      words = kDescription[op].words;
    }
  }
}

static void assemble(const char* text, int32_t* code) {
  Label labels[2 * kMaxLabels];
  int count = 0;
  pass(text, code, labels, &count);
  pass(text, code, labels, &count);
}

// Calls the code with one argument and returns its result. A frame is the return address, the
// caller's base, kLocals locals (`base` points here; the first ones are the arguments), operands.
static NOINLINE int32_t run(Machine* m, int32_t argument) {
  const int32_t* code = m->code;
  uint8_t* memory = m->memory;
  int32_t* base = m->stack;
  int32_t* sp = base + kLocals;  // one past the top of the stack
  int32_t pc = 0;
  memset(base, 0, kLocals * sizeof *base);
  base[0] = argument;
  for (uint64_t executed = 1;; ++executed) {
    switch ((Op)code[pc++]) {
      case kHalt: m->executed += executed; return sp[-1];
      case kPush: *sp++ = code[pc++]; break;
      case kDup: sp[0] = sp[-1], ++sp; break;
      case kGet: *sp++ = base[code[pc++]]; break;
      case kSet: base[code[pc++]] = *--sp; break;
      case kInc: ++base[code[pc++]]; break;
      case kLoad: sp[-1] = memory[sp[-1]]; break;
      case kStore: sp -= 2, memory[sp[0]] = (uint8_t)sp[1]; break;
      case kAdd: --sp, sp[-1] = (int32_t)((uint32_t)sp[-1] + (uint32_t)sp[0]); break;
      case kSub: --sp, sp[-1] = (int32_t)((uint32_t)sp[-1] - (uint32_t)sp[0]); break;
      case kMul: --sp, sp[-1] = (int32_t)((uint32_t)sp[-1] * (uint32_t)sp[0]); break;
      case kDiv: --sp, sp[-1] = (int32_t)((uint32_t)sp[-1] / (uint32_t)(sp[0] | 1)); break;
      case kRem: --sp, sp[-1] = (int32_t)((uint32_t)sp[-1] % (uint32_t)(sp[0] | 1)); break;
      case kAnd: --sp, sp[-1] &= sp[0]; break;
      case kOr: --sp, sp[-1] |= sp[0]; break;
      case kXor: --sp, sp[-1] ^= sp[0]; break;
      case kShl: --sp, sp[-1] = (int32_t)((uint32_t)sp[-1] << (sp[0] & 31)); break;
      case kShr: --sp, sp[-1] = (int32_t)((uint32_t)sp[-1] >> (sp[0] & 31)); break;
      case kEq: --sp, sp[-1] = sp[-1] == sp[0]; break;
      case kNe: --sp, sp[-1] = sp[-1] != sp[0]; break;
      case kLt: --sp, sp[-1] = sp[-1] < sp[0]; break;
      case kNot: sp[-1] = sp[-1] == 0; break;
      case kJump: pc = code[pc]; break;
      case kIf: --sp, pc = sp[0] != 0 ? code[pc] : pc + 1; break;
      case kCall: {
        int32_t arguments = code[pc + 1];
        int32_t* frame = sp - arguments + 2;
        if (frame - m->stack > kStackSize - 4 * kLocals) return -1;
        for (int32_t i = arguments - 1; i >= 0; --i) frame[i] = frame[i - 2];
        for (int32_t i = arguments; i < kLocals; ++i) frame[i] = 0;
        frame[-2] = pc + 2;
        frame[-1] = (int32_t)(base - m->stack);
        pc = code[pc];
        base = frame;
        sp = frame + kLocals;
        break;
      }
      case kReturn: {
        int32_t result = sp[-1];
        sp = base - 2;
        pc = base[-2];
        base = m->stack + base[-1];
        *sp++ = result;
        break;
      }
      case kOps: return -1;
    }
  }
}

typedef struct Program {
  const char* name;
  const char* text;
  int32_t argument;
} Program;

int main(int argc, char** argv) {
  static const Program kPrograms[] = {
      {"sieve", kSieve, 2000}, {"fibonacci", kFibonacci, 17}, {"collatz", kCollatz, 150}};
  enum { kCount = sizeof kPrograms / sizeof kPrograms[0] };
  static Machine machines[kCount];
  static uint8_t memory[kMemorySize];
  uint32_t rounds = size_argument(argc, argv, 30);
  uint64_t checksum = 0;
  for (int i = 0; i < kCount; ++i) {
    assemble(kPrograms[i].text, machines[i].code);
    machines[i].memory = memory;
  }
  for (uint32_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < kCount; ++i) {
      int32_t more = (int32_t)(i == 1 ? round % 2 : round % 32);
      memset(memory, 0, sizeof memory);
      machines[i].result = run(&machines[i], kPrograms[i].argument + more);
      checksum = fold(checksum, (uint32_t)machines[i].result);
    }
  }
  for (int i = 0; i < kCount; ++i) {
    const Machine* m = &machines[i];
    printf("bytecode %s: %" PRIu32 " runs, %" PRIu64 " operations, last result %" PRId32 "\n",
           kPrograms[i].name, rounds, m->executed, m->result);
    checksum = fold(checksum, m->executed);
  }
  print_checksum("bytecode", checksum);
  return 0;
}
