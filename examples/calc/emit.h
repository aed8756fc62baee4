// emit.h: from a plan to IR, in one walk over the bytecode that is also the inference of types.
//
// A register is a Variable of the form that its type asks for: i32, f64, or i64 for a pointer or a
// Val. An instruction reads registers by their types, emits what is needed for these, and says the
// type of what it writes. The same walk without a builder (Ir::dry) does everything but emit; it is
// repeated until the types at all blocks stand (infer), and then the frames that guards leave to
// are known as well. So inference and code cannot disagree.
//
// Where types come from: constants, the results of operations, and what was seen (Plan::seen):
// `narrow` guards that a value is what all values were so far, and from there on its type is known
// for certain; `need` guards that it is what an operation is fast for. What a loop needs of a
// register that it does not write is guarded before the loop (hoist). A guard leaves for the
// interpreter, at the place that its frame_state names.
//
//   Thread: a builder's. A plan is not changed by emitting code.
#pragma once

#include <functional>
#include <set>

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

inline constexpr auto kI32 = uptier::Type::kI32, kI64 = uptier::Type::kI64,
                      kF64 = uptier::Type::kF64;

// Places that never overlap: alias classes of loads and stores.
enum Place : uint8_t { kShapes = 1, kArrays, kElements, kSlots, kCells, kGlobals, kEntries };

// A C function as compiled code calls it: every argument a word, a number a double.
template <typename T>
constexpr uptier::Type type_of = std::is_void_v<T>            ? uptier::Type::kNone
                                 : std::is_same_v<T, double>  ? kF64
                                 : std::is_same_v<T, int32_t> ? kI32
                                                              : kI64;
template <typename R, typename... A>
uptier::HostFunction host_function(const char* name, R (*f)(A...)) {
  return {name, reinterpret_cast<const void*>(f), {{type_of<A>...}, type_of<R>}};
}
#define HELPER(name) host_function(#name, calc_##name)

// A FunctionBuilder, or nothing at all.
class Ir {
 public:
  explicit Ir(uptier::FunctionBuilder* b) : b_(b) {}
  bool dry() const { return b_ == nullptr; }
  uptier::FunctionBuilder* operator->() { return b_; }

  Value i32(int32_t v) { return dry() ? Value() : b_->i32(v); }
  Value i64(uint64_t v) { return dry() ? Value() : b_->i64(static_cast<int64_t>(v)); }
  Value f64(double v) { return dry() ? Value() : b_->f64(v); }
  Value pointer(const void* p) { return i64(reinterpret_cast<uintptr_t>(p)); }
  Value un(Opcode op, Value a) { return dry() ? Value() : b_->unary(op, a); }
  Value bin(Opcode op, Value a, Value b) { return dry() ? Value() : b_->binary(op, a, b); }
  Value to(uptier::Type t, Opcode op, Value a) { return dry() ? Value() : b_->convert(op, t, a); }
  Value select(Value c, Value a, Value b) { return dry() ? Value() : b_->select(c, a, b); }
  // Of a place; or, with flags, of what never changes and is there whatever the guards say.
  Value load(uptier::Type t, Place place, Value base, size_t offset, Value index = Value::none()) {
    return dry() ? Value() : b_->load(Opcode::kLoad, t, at(place, base, offset, index));
  }
  Value load_constant(Value base, size_t offset) {
    if (dry()) return {};
    return b_->load(Opcode::kLoad, kI64,
                    {base, Value::none(), static_cast<uint32_t>(offset), uptier::kMemInvariant});
  }
  void store(Place place, Value v, Value base, size_t offset, Value index = Value::none()) {
    if (!dry()) b_->store(Opcode::kStore, v, at(place, base, offset, index));
  }
  Value call(const uptier::HostFunction& f, std::initializer_list<Value> args,
             uint8_t flags = uptier::kCallMayTrap) {
    return dry() ? Value() : b_->call_host(f, {args.begin(), args.size()}, flags);
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
  void def(Variable x, Value v) {
    if (!dry()) b_->def(x, v);
  }
  Value use(Variable x) { return dry() ? Value() : b_->use(x); }

 private:
  static uptier::Address at(Place place, Value base, size_t offset, Value index) {
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
  void emit() { walk(); }

 private:
  struct Operand {
    Type type;
    Value value;
    int reg = -1;  // -1: a constant
  };

  // ---- emit.cc: blocks, paths, registers, guards
  void walk();
  void enter_function();
  void enter_block();
  void enter_loop(Loop& loop);
  void end_loops();
  void flow(uint32_t to, bool back = false);  // ends the block with a jump
  void flow_if(Value condition, uint32_t yes, uint32_t no, bool back = false);
  void arrive(uint32_t to, bool back);
  bool direct(uint32_t to, bool back) const;
  void hoist(uint32_t to);
  Block block_at(uint32_t at);
  const Instr* instr() const { return code_ + at_; }

  Variable variable(int reg, uptier::Type form);
  Type& type(int reg) { return types_[static_cast<size_t>(reg)]; }
  Value get(int reg) { return ir_.use(variable(reg, type(reg).form())); }
  void set(int reg, Type t, Value v);
  // Of an object: gives a Val the form of its type.
  void set_object(int reg, Type t, Value v) { set(reg, t, ir_.bin(Opcode::kSub, v, tag())); }
  // A value of any type, or of what was seen.
  void set_seen(int reg, Value v);
  Operand operand(int reg) { return {type(reg), get(reg), reg}; }
  Operand constant(Val v);
  Operand constant_at(size_t index) { return constant(vm_.code.constants[index]); }
  Value box(const Operand& o);
  Value boxed(int reg) { return box(operand(reg)); }
  Value double_of(const Operand& o);
  Value truth(const Operand& o);
  Value self() { return ir_.dry() ? Value() : ir_->param(0); }
  Value vm() { return ir_.pointer(&vm_); }
  Value where() { return ir_.pointer(instr()); }
  Value tag() { return ir_.i64(kObjectTag); }

  void frame_state(uint32_t at, State s = {});
  void state_here();  // unless the last one is good still
  // Leaves at the current instruction where the condition is 0.
  void guard(Value condition, GuardReason reason);
  // Leaves by the latest frame_state.
  void guard_state(Value condition, GuardReason reason);
  // Ends the block where nothing was ever seen; returns whether it did.
  bool unreached(bool seen);
  bool has_seen(uint16_t bit) const { return (plan_.seen[at_] & bit) != 0; }
  bool fast_here() const { return plan_.speculate && !has_seen(kStranger); }
  // Gives a register the type that its values had, by guards at `to`.
  void narrow(int reg, uint16_t seen, uint32_t to, uint32_t learn_at);
  // Guards that a register is of a type at the current instruction. Returns whether it may be.
  bool need(int reg, Type wanted);
  void want(int reg, Type wanted);
  void check(int reg, Type wanted);
  void check_number(int reg);
  void forget_shapes();

  // ---- emit_numbers.cc
  void arithmetic(Op op, Operand a, Operand b);
  void int_arithmetic(Op op, const Operand& a, const Operand& b);
  void double_arithmetic(Op op, const Operand& a, const Operand& b);
  void any_arithmetic(Op op, const Operand& a, const Operand& b);
  bool make_numbers(Operand& a, Operand& b);
  Value either(Value condition, const std::function<Value()>& yes,
               const std::function<Value()>& no);
  void negate();
  Value compare(Op op, Operand a, Operand b);
  Value equals(const Operand& a, const Operand& b);
  void for_prepare();

  // ---- emit_objects.cc
  void instruction();
  void jump_instruction();
  void get_global();
  Value capture();
  void get_field();
  Value any_field(const Plan::Field& seen, const Operand& object);
  void set_field();
  Value slot(Value record, uint32_t slot, Value* store = nullptr);
  struct Element {
    Value data, index;
  };
  Element element_of(int array, int index);
  Value length_of(int array);
  Value scaled(Value index);
  void get_index();
  void set_index();
  void new_array();
  void new_record();
  void new_closure();
  void call();
  Value call_target();
  void builtin();
  bool short_builtin();
  void push();

  static constexpr uint32_t kNoState = UINT32_MAX;
  static constexpr int kLength = 256, kData = 512;  // of the array in a register

  Vm& vm_;
  Plan& plan_;
  Ir ir_;
  const Instr* code_ = nullptr;
  uint32_t at_ = 0;     // the current instruction's place in the function
  bool alive_ = false;  // whether a path comes to it
  std::vector<Type> types_;
  std::map<std::pair<int, uptier::Type>, Variable> variables_;
  std::map<uint32_t, Block> blocks_;
  std::map<uint32_t, Loop*> open_;  // the loops around, by header
  int next_loop_ = 0;
  uint32_t next_state_ = 0;
  uint32_t state_at_ = kNoState;  // where the latest frame_state is good for guards
  bool changed_ = false, wants_more_ = false, recording_ = false;
};

}  // namespace calc
