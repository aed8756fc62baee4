// emit.h: from a plan to IR, in one walk over the bytecode that is also the inference of types.
//
// A register is a Variable of the form that its type asks for: i32, f64, or i64 for a boxed Val. An
// instruction reads registers by their types, emits what is needed for these, and says the type of
// what it writes. The same walk without a builder (Ir::dry) does everything but emit; it is
// repeated until the types at all blocks stand (infer), and then the frames that guards leave to
// are known as well. So inference and code cannot disagree.
//
// Where types come from: constants, the results of operations, and what was seen (Plan::seen):
// `narrow` guards that a value is what all values were so far, and from there on its type is known
// for certain. A guard leaves for the interpreter, at the place that its frame_state names.
//
//   Thread: a builder's. A plan is not changed by emitting code.
#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "plan.h"
#include "uptier/builder.h"

// Objects have a header and members; where these lie is what both compilers that build this say.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace calc {

using uptier::Block;
using uptier::GuardReason;
using uptier::Opcode;
using uptier::Value;
using uptier::Variable;

// Places that never overlap: alias classes of loads and stores.
enum Place : uint8_t { kShapes = 1, kArrays, kElements, kSlots, kCells, kGlobals, kEntries };

// A FunctionBuilder, or nothing at all.
class Ir {
 public:
  explicit Ir(uptier::FunctionBuilder* b) : b_(b) {}
  bool dry() const { return b_ == nullptr; }
  uptier::FunctionBuilder& builder() { return *b_; }

  Value i32(int32_t v) { return dry() ? Value() : b_->i32(v); }
  Value i64(uint64_t v) { return dry() ? Value() : b_->i64(static_cast<int64_t>(v)); }
  Value f64(double v) { return dry() ? Value() : b_->f64(v); }
  Value pointer(const void* p) { return i64(reinterpret_cast<uintptr_t>(p)); }
  Value param(unsigned i) { return dry() ? Value() : b_->param(i); }
  Value un(Opcode op, Value a) { return dry() ? Value() : b_->unary(op, a); }
  Value bin(Opcode op, Value a, Value b) { return dry() ? Value() : b_->binary(op, a, b); }
  Value convert(Opcode op, uptier::Type to, Value a) {
    return dry() ? Value() : b_->convert(op, to, a);
  }
  Value select(Value c, Value a, Value b) { return dry() ? Value() : b_->select(c, a, b); }
  Value load(Place place, Value base, size_t offset, Value index = Value::none()) {
    return dry() ? Value()
                 : b_->load(Opcode::kLoad, uptier::Type::kI64, at(place, base, offset, index));
  }
  Value load32(Place place, Value base, size_t offset) {
    return dry() ? Value() : b_->load(Opcode::kLoad, uptier::Type::kI32, at(place, base, offset));
  }
  // Of what never changes, and is there whatever the guards say.
  Value load_constant(Value base, size_t offset) {
    if (dry()) return {};
    return b_->load(Opcode::kLoad, uptier::Type::kI64,
                    {base, Value::none(), static_cast<uint32_t>(offset), uptier::kMemInvariant});
  }
  void store(Place place, Value v, Value base, size_t offset, Value index = Value::none()) {
    if (!dry()) b_->store(Opcode::kStore, v, at(place, base, offset, index));
  }
  Value call(const uptier::HostFunction& f, std::initializer_list<Value> args, bool may_fail) {
    return dry() ? Value()
                 : b_->call_host(f, {args.begin(), args.size()},
                                 static_cast<uint8_t>(may_fail ? uptier::kCallMayTrap : 0));
  }
  Block block() { return dry() ? Block() : b_->create_block(); }
  void jump(Block to) {
    if (!dry()) b_->jump(to);
  }
  void branch(Value c, Block yes, Block no) {
    if (!dry()) b_->branch(c, yes, no);
  }
  // Begins a block whose predecessors are all there.
  void begin(Block b) {
    if (dry()) return;
    b_->switch_to(b);
    b_->seal(b);
  }
  Variable variable(uptier::Type t) { return dry() ? Variable() : b_->declare(t); }
  void def(Variable x, Value v) {
    if (!dry()) b_->def(x, v);
  }
  Value use(Variable x) { return dry() ? Value() : b_->use(x); }

 private:
  static uptier::Address at(Place place, Value base, size_t offset, Value index = Value::none()) {
    return {base, index, static_cast<uint32_t>(offset), uptier::alias_class(place)};
  }

  uptier::FunctionBuilder* b_;
};

class Emitter {
 public:
  Emitter(Vm& vm, Plan& plan, uptier::FunctionBuilder* b) : vm_(vm), plan_(plan), ir_(b) {}

  // Finds the types at all blocks and the frames of loops and guards.
  void infer();
  // Describes the body.
  void emit();

 private:
  struct Operand {
    Type type;
    Value value;
    int reg = -1;  // -1: a constant
  };

  // ---- emit.cc: blocks, registers, frames
  void walk();
  void enter_function();
  void enter_block();
  void instruction();
  void jump_instruction();
  void end_loops();
  void flow(uint32_t to);  // ends the block with a jump
  void flow_if(Value condition, uint32_t yes, uint32_t no);
  bool fits(uint32_t to) const;
  void convert_for(uint32_t to);
  Block block_at(uint32_t at);
  const Instr* instr() const { return code_ + at_; }
  uint32_t relative(int32_t d) const { return static_cast<uint32_t>(d) - plan_.proto->begin; }

  Variable variable(int reg, uptier::Type form);
  Value get(int reg);
  void set(int reg, Type t, Value v);
  Operand operand(int reg) { return {types_[static_cast<size_t>(reg)], get(reg), reg}; }
  Operand constant(Val v);
  Value box(const Operand& o);
  Value boxed(int reg) { return box(operand(reg)); }
  Value double_of(const Operand& o);
  Value truth(const Operand& o);
  Value self() { return ir_.param(0); }
  Value vm() { return ir_.pointer(&vm_); }
  Value where() { return ir_.pointer(instr()); }
  Type& type(int reg) { return types_[static_cast<size_t>(reg)]; }

  void frame_state(uint32_t at, int result = State::kNobody, uint32_t seen_at = 0);
  // Leaves at the current instruction, or behind it, where the condition is 0.
  void guard(Value condition, GuardReason reason);
  void guard_state(Value condition, GuardReason reason);
  // Ends the block where nothing was ever seen; returns whether it did.
  bool unreached(bool seen);
  bool has_seen(uint16_t bit) const { return (plan_.seen[at_] & bit) != 0; }
  // Gives a register the type that its values had, by guards behind the current instruction.
  void narrow(int reg, uint16_t seen, uint32_t to, uint32_t seen_at);
  // The same at the current instruction, for a wanted type. Returns whether that can be.
  bool need(int reg, Type::Is wanted, Shape* shape = nullptr);
  void check(int reg, Type::Is wanted, Shape* shape);
  void check_number(int reg);
  void forget_shapes();

  // ---- emit_numbers.cc
  void arithmetic(Op op, Operand a, Operand b);
  void int_arithmetic(Op op, const Operand& a, const Operand& b);
  void double_arithmetic(Op op, const Operand& a, const Operand& b);
  void any_arithmetic(Op op, const Operand& a, const Operand& b);
  bool numbers_so_far(const Operand& a, const Operand& b) const;
  Operand number_of(const Operand& o);
  Value either(Value condition, uptier::Type form, const std::function<Value()>& yes,
               const std::function<Value()>& no);
  void negate();
  Value compare(Op op, Operand a, Operand b);  // op: kLess, kLessEqual, kEqual
  Value equals(const Operand& a, const Operand& b);
  void for_prepare();

  // ---- emit_objects.cc
  void get_field();
  Value any_field(const Plan::Field& seen, Value object);
  void set_field();
  Value slot_of(Value record, uint32_t slot);
  void set_slot(Value record, uint32_t slot, Value v);
  struct Element {
    Value data, index;
  };
  Element element_of(int array, int index);
  void get_index();
  void set_index();
  void new_array();
  void new_record();
  void new_closure();
  void call();
  Value call_target();
  void builtin();

  static constexpr uint32_t kNoState = UINT32_MAX;

  Vm& vm_;
  Plan& plan_;
  Ir ir_;
  const Instr* code_ = nullptr;
  uint32_t at_ = 0;     // the current instruction's place in the function
  bool alive_ = false;  // whether a path comes to it
  std::vector<Type> types_;
  std::map<std::pair<int, uptier::Type>, Variable> variables_;
  std::map<uint32_t, Block> blocks_;
  std::map<uint32_t, uint32_t> open_;  // loop headers by where their last jump back ends
  uint32_t next_state_ = 0;
  uint32_t state_at_ = kNoState;  // where the latest frame_state is good for guards
  bool changed_ = false;
  bool recording_ = false;
};

}  // namespace calc
