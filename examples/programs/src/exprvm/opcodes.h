// The opcodes of the accumulator machine.
//
// There are two accumulators, one for integers and one for floats. An operation with two operands
// has the accumulator as its left one (in the forms Local and Const) or takes the left one from the
// stack and has the accumulator as its right one (Stack). Unless... jumps if the comparison does not
// hold.
#ifndef UPTIER_EXAMPLES_EXPRVM_OPCODES_H
#define UPTIER_EXAMPLES_EXPRVM_OPCODES_H

// The forms of an operation follow each other: Local, Stack, Const.
#define FORMS(X, name) X(name##Local) X(name##Stack) X(name##Const)
#define FLOAT_FORMS(X, name) X(name##Local) X(name##Stack)

// clang-format off
#define COMPARISONS(X, form, prefix)                                                           \
  form(X, prefix##Eq) form(X, prefix##Ne) form(X, prefix##Lt) form(X, prefix##Le)              \
  form(X, prefix##Gt) form(X, prefix##Ge)

#define OPCODES(X)                                                                             \
  /* Integers: accumulator and locals; the number of a local is an operand or in the name. */  \
  X(Zero) X(One) X(Const8) X(Const16) X(Constant)                                              \
  X(Load) X(Load0) X(Load1) X(Load2) X(Load3) X(Load4) X(Load5) X(Load6) X(Load7)              \
  X(Store) X(Store0) X(Store1) X(Store2) X(Store3) X(Store4) X(Store5) X(Store6) X(Store7)     \
  X(Push) X(PushLocal) X(Move) X(Increment) X(Decrement) X(AddTo)                              \
  /* Arithmetic of integers. */                                                                \
  FORMS(X, Add) FORMS(X, Sub) FORMS(X, Mul) FORMS(X, Div) FORMS(X, Rem) FORMS(X, And)          \
  FORMS(X, Or) FORMS(X, Xor) FORMS(X, Shl) FORMS(X, Shr) FORMS(X, Sar) FORMS(X, Min)           \
  FORMS(X, Max)                                                                                \
  X(Negate) X(Complement) X(Not) X(Absolute) X(Ones) X(Zeros) X(Truth)                         \
  /* Comparisons of integers, and jumps. */                                                    \
  COMPARISONS(X, FORMS, Is) COMPARISONS(X, FORMS, Unless)                                      \
  X(Jump) X(JumpBack) X(JumpIf) X(JumpIfNot) X(LoopBelow)                                      \
  /* Floats. */                                                                                \
  X(FZero) X(FOne) X(FConstant)                                                                \
  X(FLoad) X(FLoad0) X(FLoad1) X(FLoad2) X(FLoad3) X(FLoad4) X(FLoad5)                         \
  X(FStore) X(FStore0) X(FStore1) X(FStore2) X(FStore3) X(FStore4) X(FStore5)                  \
  X(FPush) X(FPushLocal) X(FAddTo)                                                             \
  FLOAT_FORMS(X, FAdd) FLOAT_FORMS(X, FSub) FLOAT_FORMS(X, FMul) FLOAT_FORMS(X, FDiv)          \
  FLOAT_FORMS(X, FMin) FLOAT_FORMS(X, FMax)                                                    \
  X(FNegate) X(FAbsolute) X(FRoot) X(FFloor) X(ToFloat) X(ToInt)                               \
  COMPARISONS(X, FLOAT_FORMS, IsF) COMPARISONS(X, FLOAT_FORMS, UnlessF)                        \
  /* Arrays: the array is in a local, the index in the accumulator, on the stack or in a local. */ \
  X(NewInts) X(NewFloats) X(Length) X(Get) X(GetAt) X(Set) X(SetAt) X(AddToElement)            \
  X(FGet) X(FGetAt) X(FSet) X(FSetAt) X(FAddToElement)                                         \
  /* Calls. */                                                                                 \
  X(Call) X(Return) X(FReturn)
// clang-format on

#define ENUMERATE(name) k##name,
typedef enum { OPCODES(ENUMERATE) kOpcodes } Opcode;

#endif  // UPTIER_EXAMPLES_EXPRVM_OPCODES_H
