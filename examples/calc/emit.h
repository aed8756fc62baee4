// emit.h: from a plan to IR, in a walk over the bytecode that is also the inference of types
// (uptier/register_builder.h).
//
// An instruction reads registers by their types, emits code for these types, and says the type of
// its result. Types come from constants, from the results of operations, and from observations:
// `narrow` guards that a value has the type that all values had so far, and from there on its type
// is known for certain; `need` guards that it has the type for which an operation is fast. A guard
// leaves for the interpreter, at the place that its frame_state names.
//
//   Thread: a builder's. A plan is changed by inferring, not by emitting code.
#pragma once

#include "plan.h"
#include "uptier/builder.h"

// Both compilers that build this support `offsetof` for classes without standard layout.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace calc {

using uptier::Block;
using uptier::GuardReason;
using uptier::Opcode;
using uptier::Value;
using uptier::Variable;

inline constexpr auto kI32 = uptier::Type::kI32, kI64 = uptier::Type::kI64,
                      kF64 = uptier::Type::kF64;

// Places that never overlap: alias classes of loads and stores. A field lies in the same slot of
// every record that may be stored to in its place, so slots have classes of their own while there are
// some left.
enum Memory : uint8_t { kShapes = 1, kRows, kElements, kCells, kGlobals, kFunctions, kFields };
inline Memory fields(size_t slot) {
  return static_cast<Memory>(kFields + slot % (uptier::kAliasClasses - kFields));
}

#define HELPER(name) uptier::host_function(#name, calc_##name)

class Emitter : public uptier::RegisterBuilder<Type> {
 public:
  Emitter(Vm& vm, Plan& plan, uptier::FunctionBuilder& b, bool infers)
      : RegisterBuilder(plan.code, plan.types, b, plan.proto->registers, infers),
        vm_(vm),
        plan_(plan),
        file_(b.add_file(vm.file)) {}

 private:
  struct Operand {
    Type type;
    Value value;
    int reg = -1;  // -1: a constant
  };

  // ---- emit.cc: types, guards
  void enter() override;
  void instruction() override;
  void set_position();
  Value convert(Value v, Type from, Type to) override;

  const Instr& instr() const { return vm_.code.instrs[plan_.proto->begin + at_]; }
  const Plan::Place& seen() const { return plan_.places[at_]; }
  // Gives the Val of an object the form of its type.
  void set_object(int reg, Type t, Value v) { set(reg, t, bin(Opcode::kSub, v, tag())); }
  void set_seen(int reg, Value v);  // of any type, or of one that was seen
  Operand operand(int reg) { return {type(reg), get(reg), reg}; }
  Operand constant(size_t index);
  Value box(const Operand& o);
  Value boxed(int reg) { return box(operand(reg)); }
  Value double_of(const Operand& o);
  Value truth(const Operand& o);

  bool unreached(bool seen);  // ends the block where nothing was ever seen
  bool has_seen(uint16_t bit) const { return (seen().seen & bit) != 0; }
  bool fast_here() const { return plan_.guess && !has_seen(kStranger); }
  bool guess_ints() const { return plan_.guess && !has_seen(kOverflow); }
  void narrow(int reg, unsigned seen, uint32_t to, uint32_t note);
  bool need(int reg, Type wanted);
  void check(int reg, Type wanted);
  void check_object(int reg, Type wanted);
  void forget_shapes();

  // ---- emit_numbers.cc
  void arithmetic(Op op, Operand a, Operand b);
  void int_arithmetic(Op op, const Operand& a, const Operand& b);
  Value double_arithmetic(Op op, Value a, Value b);
  bool make_numbers(Operand& a, Operand& b);
  void negate();
  Value compare(Op op, Operand a, Operand b);
  void for_prepare();

  // ---- emit_objects.cc
  void jump_instruction();
  void get_variable(Memory m, Value place);
  Value capture();
  void get_field();
  Value any_field(const Operand& object);
  void set_field();
  struct Element {
    Value data, index;
  };
  Element element_of(int array, int index);
  Value length_of(int array) { return load(kI32, kRows, get(array), offsetof(Row, length)); }
  Value data_of(Value row) { return load(kI64, kRows, row, offsetof(Row, data)); }
  Value scaled(Value index);
  void get_index();
  void set_index();
  void new_row();
  void new_closure();
  void call();
  void builtin();
  Value call_builtin(int count);
  void push();

  // ---- What the builder says at length
  Value bin(Opcode op, Value a, Value b) { return b_.binary(op, a, b); }
  Value un(Opcode op, Value a) { return b_.unary(op, a); }
  Value to(uptier::Type t, Opcode op, Value a) { return b_.convert(op, t, a); }
  Value word(uint64_t v) { return b_.i64(static_cast<int64_t>(v)); }
  Value pointer(const void* p) { return word(reinterpret_cast<uintptr_t>(p)); }
  Value tag() { return word(kObjectTag); }
  Value load(uptier::Type t, Memory m, Value base, size_t offset, Value index = Value::none()) {
    return b_.load(Opcode::kLoad, t, address(m, base, offset, index));
  }
  void store(Memory m, Value v, Value base, size_t offset, Value index = Value::none()) {
    b_.store(Opcode::kStore, v, address(m, base, offset, index));
  }
  static uptier::Address address(Memory m, Value base, size_t offset, Value index) {
    return {base, index, static_cast<uint32_t>(offset), uptier::alias_class(m)};
  }
  // A slow path: what it is given besides the Vm and the instruction.
  template <typename... V>
  Value slow(const uptier::HostFunction& f, V... args) {
    return b_.call_host(f, {b_.ref(&vm_), b_.ref(&instr()), args...}, uptier::kCallMayTrap);
  }

  Vm& vm_;
  Plan& plan_;
  const uptier::FileId file_;  // of the program
};

}  // namespace calc
