// builder.h: how an embedder describes a method's body.
//
// SSA by Variables (Braun et al., "Simple and Efficient Construction of SSA Form", 2013): the
// embedder defines and uses Variables, and the builder inserts block parameters where paths join.
// The protocol of a block:
//
//   create -> [jumps to it] -> switch_to -> instructions -> one terminator
//   seal once every predecessor has been added; a loop header is sealed after its back edges
//
// Blocks keep the order in which they were switched to: that is the build order from which site ids
// come, so a body that is described twice must be described the same way.
//
//   Thread: one at a time. Errors: the first misuse is remembered with its place, in every build, and
//   the build fails with it (status()); from there on calls do nothing, values are none, and only
//   ids of blocks and Variables are still handed out. What needs the whole body (types, values that
//   are used where they are not defined) the verifier finds when the body is complete.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "uptier/ids.h"
#include "uptier/opcodes.h"
#include "uptier/result.h"

namespace uptier {

// Parameters of a method, at most.
inline constexpr size_t kMaxParams = 4096;

// Types of a function's parameters and its one result (kNone when there is none).
struct Signature {
  std::vector<Type> params;
  Type result = Type::kNone;

  friend bool operator==(const Signature&, const Signature&) = default;
};

// A C function that compiled code may call: no exceptions may leave it.
struct HostFunction {
  const char* name;     // appears in the text form; must outlive the builder
  const void* address;  // of an `extern "C"` function with the signature, System V ABI
  Signature signature;
};

// The type that a C function's parameter or result has in IR. Compiled code extends no shorter
// integers and passes no classes, so other types do not compile.
template <typename T>
constexpr Type type_of_c() {
  if constexpr (std::is_void_v<T>) {
    return Type::kNone;
  } else if constexpr (std::is_pointer_v<T>) {
    return Type::kRef;
  } else if constexpr (std::is_floating_point_v<T> && sizeof(T) <= 8) {
    return sizeof(T) == 4 ? Type::kF32 : Type::kF64;
  } else {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
    return sizeof(T) == 4 ? Type::kI32 : Type::kI64;
  }
}
// Returns what a C function takes and returns.
template <typename R, typename... A>
Signature signature_of(R (*)(A...)) {
  return {{type_of_c<A>()...}, type_of_c<R>()};
}
// Returns a C function for call_host. `name` must outlive the builder.
template <typename R, typename... A>
HostFunction host_function(const char* name, R (*f)(A...)) {
  return {name, reinterpret_cast<const void*>(f), signature_of(f)};
}

// Where an access goes: base + zero_extend(index) + offset.
struct Address {
  Value base;                   // ref or i64
  Value index = Value::none();  // i64, or i32 that is zero-extended
  uint32_t offset = 0;          // bytes
  uint8_t flags = kMemNone;     // MemFlags and an alias class
};

class FunctionBuilder {
 public:
  FunctionBuilder(Signature signature, std::string_view name);
  ~FunctionBuilder();
  FunctionBuilder(const FunctionBuilder&) = delete;
  FunctionBuilder& operator=(const FunctionBuilder&) = delete;

  // Returns the first misuse, if there was any: what, and at which location and block. A host need
  // not look: what Host::build describes fails with it. kInvalidArgument.
  Status status() const;
  // Makes the build fail as a misuse does, for what is built on this: `what` says what is wrong.
  void refuse(std::string_view what);

  // Returns the signature it was made with. Constant time, as is everything here unless it says
  // otherwise.
  const Signature& signature() const;
  // Returns parameter `i` of the function, a value of the entry block.
  Value param(unsigned i) const;
  Type type_of(Value v) const;

  // Blocks. The entry block exists, is sealed and is current at the start.
  Block create_block();
  // Makes a block current; the one before must have ended, and each block is filled once.
  void switch_to(Block b);
  // Says that all jumps to the block have been made. Once per block, not for the entry block. What
  // was not sealed is when the body ends.
  void seal(Block b);
  // Returns the block that instructions go to; none after a terminator.
  Block current() const;

  // Variables. One that is used where no path has defined it is 0 there.
  Variable declare(Type t);
  void def(Variable x, Value v);  // of the same type
  // Returns its value at the end of the current block so far. Walks predecessors once.
  Value use(Variable x);

  // Sets the source location (host's own unit, e.g. a bytecode offset) of what follows; traps,
  // probe tables and listings report it.
  void set_location(uint32_t loc);

  // Constants.
  Value i32(int32_t v);
  Value i64(int64_t v);
  Value f32(float v);
  Value f64(double v);
  Value ref(const void* p);
  Value constant(Type t, uint64_t bits);  // those above the type's width must be 0

  // Operations; types come from the operands.
  Value unary(Opcode op, Value a);                  // Shape::kUnary, kTest
  Value binary(Opcode op, Value a, Value b);        // Shape::kBinary, kCompare
  Value convert(Opcode op, Type to, Value a);       // Shape::kConvert
  Value select(Value condition, Value a, Value b);  // a when condition is not 0
  Value load(Opcode op, Type t, const Address& at);
  void store(Opcode op, Value v, const Address& at);

  // Calls; they return none when the signature has no result. `call` goes through the method's
  // stub, or from optimized code straight to optimized code, so it always runs the best there is.
  Value call(MethodId callee, const Signature& signature, std::span<const Value> args,
             std::string_view name = {});
  // `target` (a ref): an entry, or a C function. `flags`: kCallMayTrap when it may be a C function
  // that raises a trap; entries need no flag for theirs. That the target is not null and has the
  // signature is the host's to check: nothing else does.
  Value call_indirect(Value target, const Signature& signature, std::span<const Value> args,
                      uint8_t flags = 0);
  // `flags`: kCallMayTrap when the callee may raise a trap (`Runtime::raise`); kCallCopies, kCallFills.
  Value call_host(const HostFunction& callee, std::span<const Value> args, uint8_t flags = 0);
  Value call_host(const HostFunction& callee, std::initializer_list<Value> args,
                  uint8_t flags = 0) {
    return call_host(callee, std::span(args.begin(), args.size()), flags);
  }

  // Control. Each ends the current block.
  void jump(Block to);
  void branch(Value condition, Block if_true, Block if_false);
  // Goes to cases[index], or to `otherwise` when index (unsigned) is past the end.
  void switch_on(Value index, std::span<const Block> cases, Block otherwise);
  void ret();         // of a function without result only
  void ret(Value v);  // of its result type
  void trap(TrapCode code);
  void trap_if(Value condition, TrapCode code);  // does not end the block

  // Marks the current block, which must be empty and unsealed, as the header of a loop: the runtime
  // may switch copies and tiers here. `slots` is the host's frame state at `pc` (may be empty when
  // the host never takes frames back).
  LoopId loop_header(uint32_t pc = 0, std::span<const Variable> slots = {});

  // Gives each Variable a value of its own, which is no constant, parameter or other Variable's value.
  // For hosts whose interpreter enters loops (Runtime::osr_enter): with the slots of each loop's
  // header, right before the jump that comes to it from outside. Code takes for granted what the
  // description says of a slot, and the interpreter may have come by a way that the description
  // leaves out (behind a guard or `leave`), on which a Variable that is constant here was assigned.
  // RegisterBuilder does it by itself. Cost: an instruction a Variable, outside of the loop.
  void make_own(std::span<const Variable> variables);

  // Declares the host's frame at `pc`, to which guards behind it in its block leave. The interpreter
  // repeats what is at `pc`, so nothing visible may have happened since: no store and no call, host
  // calls included, stands between it and a guard.
  void frame_state(uint32_t pc, std::span<const Value> slots);
  // Continues when `condition` is not 0, else leaves to the host's frame.
  void guard(Value condition, GuardReason reason);
  // Leaves to the host's frame whenever control comes here, and ends the block: for a path that is
  // not worth describing, since nothing was ever seen of it. Needs a frame state, as a guard does.
  void leave(GuardReason reason = GuardReason::kUnreached);
  // Observes `v` at a site of the host's own; returns the index among host sites, in build order.
  // Sites are numbered from 1 when the function is finished: blocks, then calls, then these in build
  // order, then what the library places. So among the slots of one kind in the method's Schema the
  // host's come first, in build order.
  // Which kinds take which values, and which the library places itself: see ProbeKind. `tag` goes
  // into the records of a kLog probe, and is 0 for the others.
  uint32_t probe(ProbeKind kind, Value v = Value::none(), uint32_t tag = 0);
  // Returns, as an i64, what a kCounter, kHit or kGauge probe has come to, as far as the compiler
  // knows: a constant in optimized code, and 0 in all other and where nothing is known. `probe` is
  // what probe() returned, in this body.
  //
  // It is for bodies with two ways to do one thing, of which a compilation keeps the one that pays:
  //
  //   b.branch(b.binary(Opcode::kGeU, b.known_count(taken), b.i64(1000)), by_table, one_by_one);
  //
  // The body must be right whatever the number is. One value keeps it as long as it lives; two calls
  // may return two numbers, in one execution too, as code changes under it. The number is an estimate
  // of all executions (MethodProfile::estimates), of this run, or where that has observed little, of
  // one run of a saved profile; a gauge's is the greatest value seen. What is inlined asks for its own.
  Value known_count(uint32_t probe);

 private:
  friend struct BuilderAccess;  // hands the finished function to the compiler
  struct Impl;
  FunctionBuilder(std::unique_ptr<Impl> impl, Signature signature, std::string_view name);
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptier
