// The opcodes of the script machine: name, number of operand bytes. Jumps are relative to their end.
#ifndef UPTIER_EXAMPLES_SCRIPT_OPCODES_H
#define UPTIER_EXAMPLES_SCRIPT_OPCODES_H

// clang-format off
#define OPCODES(X)                                                                              \
  /* Constants. */                                                                              \
  X(Null, 0) X(True, 0) X(False, 0) X(Zero, 0) X(One, 0) X(Int8, 1) X(Int16, 2) X(Constant, 2)  \
  X(Function, 1)                                                                                \
  /* The stack. */                                                                              \
  X(Pop, 0) X(Dup, 0) X(DupPair, 0)                                                             \
  /* Locals; the operand is the number of the local. */                                         \
  X(Get, 1) X(Get0, 0) X(Get1, 0) X(Get2, 0) X(Get3, 0) X(Get4, 0) X(Get5, 0) X(Get6, 0)        \
  X(Get7, 0) X(GetPair, 2) X(Set, 1) X(Set0, 0) X(Set1, 0) X(Set2, 0) X(Set3, 0) X(Set4, 0)     \
  X(Set5, 0) X(Inc, 1) X(Dec, 1) X(AddTo, 1) X(Move, 2)                                         \
  /* Globals. */                                                                                \
  X(GetGlobal, 1) X(SetGlobal, 1) X(IncGlobal, 1)                                               \
  /* Arithmetic. */                                                                             \
  X(Add, 0) X(Sub, 0) X(Mul, 0) X(Div, 0) X(Rem, 0) X(Neg, 0) X(IntDiv, 0) X(IntMul, 0)         \
  X(And, 0) X(Or, 0) X(Xor, 0) X(Shl, 0) X(Shr, 0) X(Sar, 0) X(Complement, 0) X(Not, 0)         \
  X(AddInt, 1) X(SubInt, 1) X(MulInt, 1) X(AndInt, 1) X(ShlInt, 1) X(ShrInt, 1) X(RemInt, 1)    \
  X(Sqrt, 0) X(Floor, 0) X(Abs, 0) X(Min, 0) X(Max, 0) X(ToInt, 0) X(ToFloat, 0)                \
  /* Comparisons, and jumps that compare. */                                                    \
  X(Eq, 0) X(Ne, 0) X(Lt, 0) X(Le, 0) X(Gt, 0) X(Ge, 0)                                         \
  X(Jump, 2) X(JumpBack, 2) X(JumpIf, 2) X(JumpIfNot, 2) X(JumpAnd, 2) X(JumpOr, 2)             \
  X(UnlessEq, 2) X(UnlessNe, 2) X(UnlessLt, 2) X(UnlessLe, 2) X(UnlessGt, 2) X(UnlessGe, 2)     \
  X(UnlessEqInt, 3) X(UnlessLtInt, 3) X(UnlessGeInt, 3)                                         \
  /* Calls. */                                                                                  \
  X(Call, 1) X(CallKnown, 2) X(CallNative, 2) X(Return, 0) X(ReturnNull, 0) X(ReturnLocal, 1)   \
  /* Arrays, maps and records. */                                                               \
  X(NewArray, 1) X(Filled, 0) X(Index, 0) X(IndexLocals, 2) X(Store, 0) X(Length, 0)            \
  X(Push, 0) X(PopLast, 0) X(Swap, 0) X(NewMap, 0) X(Has, 0) X(NewRecord, 2) X(GetField, 1)     \
  X(FieldOfLocal, 2) X(SetField, 1)                                                             \
  /* Strings. */                                                                                \
  X(Code, 0) X(Character, 0) X(Text, 0) X(Substring, 0)                                         \
  /* The rest. */                                                                               \
  X(Mark, 0) X(Release, 0) X(Fold, 0)
// clang-format on

#define ENUMERATE(name, bytes) k##name,
typedef enum { OPCODES(ENUMERATE) kOpcodes } Opcode;

#endif  // UPTIER_EXAMPLES_SCRIPT_OPCODES_H
