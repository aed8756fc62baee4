// The operations of the register machine.
//
// `a`, `b` and `c` are the operands, and r[] is a register.
#ifndef UPTIER_EXAMPLES_STORE_OPCODES_H
#define UPTIER_EXAMPLES_STORE_OPCODES_H

#include <stdint.h>

// clang-format off
#define OPCODES(X)                                                                          \
  /* Control: Halt ends, the others jump to b; Countdown if --r[a] is negative. */           \
  X(Halt) X(Goto) X(If) X(IfNot) X(IfNull) X(IfNotNull) X(Countdown)                        \
  /* Values for r[b]: a itself, a constant, a text of the statement, a parameter, r[a]. */  \
  X(Null) X(Integer) X(Constant) X(Text) X(Parameter) X(Copy)                               \
  /* r[c] = r[a] op r[b] */                                                                 \
  X(Add) X(Subtract) X(Multiply) X(Divide) X(Remainder) X(BitAnd) X(BitOr) X(ShiftLeft)     \
  X(ShiftRight) X(Concat) X(IsEq) X(IsNe) X(IsLt) X(IsLe) X(IsGt) X(IsGe) X(And) X(Or)      \
  X(Like) X(Least) X(Most)                                                                  \
  /* r[b] = op r[a] */                                                                      \
  X(Negate) X(Not) X(Length) X(Upper) X(Absolute) X(Hash) X(ToText) X(ToInteger)            \
  /* r[c] = the text r[a], from its byte r[b] on, r[b + 1] bytes of it */                   \
  X(Substring)                                                                              \
  /* r[a] += b */                                                                           \
  X(AddConstant)                                                                            \
  /* Jump to b if r[a] op r[c]; a null makes no comparison true. */                         \
  X(Eq) X(Ne) X(Lt) X(Le) X(Gt) X(Ge)                                                       \
  /* Cursors: a is the cursor. Seeks jump to b if nothing is found, Next if there is more. */ \
  X(OpenTable) X(OpenIndex) X(OpenTemporary) X(Close) X(Rewind) X(SeekGe) X(SeekKey) X(Next) \
  X(Key) X(Column) X(IndexRow) X(LastKey)                                                   \
  /* r[c] = the key of an index for the value r[a] in the row r[b] */                       \
  X(IndexKey)                                                                               \
  /* Rows. */                                                                               \
  X(MakeRecord) X(Insert) X(InsertKey) X(Delete) X(Remember) X(Recall)                      \
  /* Aggregates in r[a], of the value r[b]. */                                              \
  X(StepCount) X(StepSum) X(StepLeast) X(StepMost)                                          \
  /* Results: r[a] and the b - 1 registers after it; sorted ones have their key in r[c]. */ \
  X(ResultRow) X(SortRow) X(Sort) X(LoadSorted) X(NextSorted)
// clang-format on

#define ENUMERATE(name) k##name##Op,
typedef enum { OPCODES(ENUMERATE) kOpcodes } Opcode;

typedef struct Operation {
  uint8_t opcode;
  int16_t a;
  int32_t b, c;
} Operation;

#endif  // UPTIER_EXAMPLES_STORE_OPCODES_H
