// builder.h: how an embedder describes a method's body.
//
// The body is in SSA form, but the host never writes a phi: it defines and uses Variables, and the
// builder inserts block parameters where paths join (Braun et al., "Simple and Efficient
// Construction of SSA Form", 2013). The protocol of a block:
//
//   create -> [jumps to it] -> switch_to -> instructions -> one terminator
//   seal once every predecessor has been added; a loop header is sealed after its back edges
//
// Blocks keep the order of the switch_to calls. This build order determines the site ids, so a body
// that is described twice must be described the same way.
//
//   Thread: one at a time.
//   Errors: the builder remembers the first misuse and its place, also with NDEBUG, and Host::build
//     fails with it (status()). After that, calls do nothing and return none as a value; ids of
//     blocks and Variables are still handed out. The verifier finds the errors that only the
//     complete body shows (types, values that are used where they are not defined). If memory is
//     refused, functions throw std::bad_alloc: let it leave Host::build.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "uptier/ids.h"
#include "uptier/log_format.h"
#include "uptier/opcodes.h"
#include "uptier/positions.h"
#include "uptier/result.h"

namespace uptier {

// The largest number of parameters of a method.
inline constexpr size_t kMaxParams = 4096;

// Types of a function's parameters and its one result (kNone when there is none).
struct Signature {
  std::vector<Type> params;
  Type result = Type::kNone;

  friend bool operator==(const Signature&, const Signature&) = default;
};

// A C function that compiled code may call. It must not let an exception out.
struct HostFunction {
  const char* name;     // appears in the text form; must outlive the builder
  const void* address;  // of an `extern "C"` function with the signature, System V ABI
  Signature signature;
};

// Returns the IR type of a C function's parameter or result. Compiled code does not extend shorter
// integers and does not pass classes, so other types do not compile.
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
// Returns the signature of a C function.
template <typename R, typename... A>
Signature signature_of(R (*)(A...)) {
  return {{type_of_c<A>()...}, type_of_c<R>()};
}
// Returns a C function for call_host. `name` must outlive the builder.
template <typename R, typename... A>
HostFunction host_function(const char* name, R (*f)(A...)) {
  return {name, reinterpret_cast<const void*>(f), signature_of(f)};
}

// The address of a memory access: base + zero_extend(index) + offset.
struct Address {
  Value base;                   // ref or i64
  Value index = Value::none();  // i64, or i32 that is zero-extended
  uint32_t offset = 0;          // bytes
  uint8_t flags = kMemNone;     // MemFlags and an alias class
};

class FunctionBuilder {
 public:
  // Creates a builder for a description that is thrown away, e.g. to infer types. Host::build is
  // given another.
  FunctionBuilder(Signature signature, std::string_view name);
  ~FunctionBuilder();
  FunctionBuilder(const FunctionBuilder&) = delete;
  FunctionBuilder& operator=(const FunctionBuilder&) = delete;

  // Returns the first misuse (kInvalidArgument) with its location and block, or success. A host
  // need not call it: Host::build fails with the same error.
  Status status() const;
  // Makes the build fail as a misuse does. For helpers that are built on this class; `what` says
  // what is wrong.
  void refuse(std::string_view what);

  // Returns the signature that the builder was created with. Takes constant time, like every
  // function here that does not say otherwise.
  const Signature& signature() const;
  // Returns parameter `i` of the function, a value of the entry block.
  Value param(unsigned i) const;
  Type type_of(Value v) const;

  // Blocks. The entry block exists, is sealed and is current at the start.
  Block create_block();
  // Makes a block current. The previous block must have ended, and each block is filled once.
  void switch_to(Block b);
  // Says that all jumps to the block have been made. Call it once per block, and not for the entry
  // block. Blocks that were not sealed are sealed when the body ends.
  void seal(Block b);
  // Returns the block that instructions are added to; none after a terminator.
  Block current() const;

  // Variables. A Variable is 0 on a path that has not defined it.
  Variable declare(Type t);
  // Assigns `v`, a value of the Variable's type, at the current end of the current block.
  void def(Variable x, Value v);
  // Returns the Variable's value at the current end of the current block. Walks the predecessors
  // once.
  Value use(Variable x);

  // Sets the source location of the following instructions, in the host's own unit, such as a
  // bytecode offset. Traps, probe tables and listings report it; 0 means no location.
  void set_location(uint32_t loc);
  // Adds a file of the sources to the body's file table. Returns its number; the same path has the
  // same number. The path is copied. Takes time linear in the number of files.
  FileId add_file(std::string_view path);
  // Says where a location lies in the sources, in any order and also after its instructions. Once
  // for each location; the same position again is accepted. Only positions of the method's first
  // description are kept. positions.h has the other way to give them. Cost: 20 bytes for a
  // location.
  void add_position(uint32_t location, const Position& at);

  // Constants.
  Value i32(int32_t v);
  Value i64(int64_t v);
  Value f32(float v);
  Value f64(double v);
  Value ref(const void* p);
  Value constant(Type t, uint64_t bits);  // bits above the type's width must be 0

  // Operations. Their types come from the operands. Conditions are i32, here and below.
  Value unary(Opcode op, Value a);                  // Shape::kUnary, kTest
  Value binary(Opcode op, Value a, Value b);        // Shape::kBinary, kCompare
  Value convert(Opcode op, Type to, Value a);       // Shape::kConvert
  Value select(Value condition, Value a, Value b);  // a when condition is not 0
  // Loads and stores need no alignment. They are plain accesses: the optimizer may forward, merge or
  // drop them (alias_class in opcodes.h), so let guest threads synchronize in host functions.
  Value load(Opcode op, Type t, const Address& at);
  void store(Opcode op, Value v, const Address& at);

  // Calls. They return none when the signature has no result. `call` runs the best code that the
  // method has at the time of the call. `signature` must be the callee's; otherwise the body is not
  // compiled. `name` appears in the text form only.
  Value call(MethodId callee, const Signature& signature, std::span<const Value> args,
             std::string_view name = {});
  // `target` (a ref) is a method's entry or a C function. Pass kCallMayTrap in `flags` if it may be
  // a C function that raises a trap; entries do not need the flag for their own traps. The host
  // must check that the target is not null and has the signature: nothing else checks it.
  Value call_indirect(Value target, const Signature& signature, std::span<const Value> args,
                      uint8_t flags = 0);
  // `flags`: kCallMayTrap if the callee may raise a trap (`Runtime::raise`); kCallCopies;
  // kCallFills.
  Value call_host(const HostFunction& callee, std::span<const Value> args, uint8_t flags = 0);
  Value call_host(const HostFunction& callee, std::initializer_list<Value> args,
                  uint8_t flags = 0) {
    return call_host(callee, std::span(args.begin(), args.size()), flags);
  }

  // Control. Each ends the current block.
  void jump(Block to);
  void branch(Value condition, Block if_true, Block if_false);
  // Goes to cases[index], or to `otherwise` when index (i32, unsigned) is past the end.
  void switch_on(Value index, std::span<const Block> cases, Block otherwise);
  void ret();         // of a function without result only
  void ret(Value v);  // of its result type
  void trap(TrapCode code);
  void trap_if(Value condition, TrapCode code);  // does not end the block

  // Marks the current block, which must be empty and unsealed, as a loop header. The runtime may
  // switch copies and tiers here. `slots` are the interpreter's variables at `pc`, for OSR entries
  // (Runtime::osr_enter); empty if the host has none. Returns the number of the header, from 0 in
  // build order. Blocks that no path reaches are removed when the body ends, and then later loops
  // have lower numbers.
  LoopId loop_header(uint32_t pc = 0, std::span<const Variable> slots = {});

  // Gives each Variable a value of its own, distinct from constants, parameters and the values of
  // other Variables.
  //
  // For hosts whose interpreter enters loops (Runtime::osr_enter): call it with the slots of each
  // loop header, right before the jump that enters the loop from outside. Compiled code relies on
  // the description of a slot. But the interpreter may have reached the loop by a path that the
  // description leaves out (after a guard or `leave`), and may have assigned a Variable there that
  // is a constant here. RegisterBuilder calls it by itself. Cost: one instruction per Variable,
  // outside of the loop.
  void make_own(std::span<const Variable> variables);

  // Declares the host's frame at `pc`. Guards after it in its block deoptimize to this frame. The
  // interpreter repeats the instruction at `pc`, so there must be no store and no call, host calls
  // included, between the frame state and a guard: the verifier refuses such a body. Loads, probes
  // and trap_if are allowed.
  void frame_state(uint32_t pc, std::span<const Value> slots);
  // Continues if `condition` is not 0, else leaves to the host's frame.
  void guard(Value condition, GuardReason reason);
  // Always leaves to the host's frame, and ends the block. For a path that is not worth describing
  // because it was never taken so far. Needs a frame state, as a guard does.
  void leave(GuardReason reason = GuardReason::kUnreached);
  // Observes `v` at a site of the host's own. Returns the probe's index among the host's probes, from
  // 0 in build order; also 0 after a misuse, which status() tells.
  //
  // Sites are numbered from 1 when the function is finished: first blocks, then calls, then the
  // host's probes in build order, then the library's own. So in the method's Schema the host's
  // slots of a kind come first, in build order. ProbeKind says which kinds take which values, and
  // which kinds only the library places. `tag` goes into the records of a kLog probe; it is 0 for
  // all other kinds.
  uint32_t probe(ProbeKind kind, Value v = Value::none(), uint32_t tag = 0);
  // Logs a line of text, in instrumented copies only: a kLog probe for each argument, or one probe
  // without an argument. `format` is a result of Runtime::add_log_format, with as many placeholders
  // as there are arguments. Returns the index of the first probe.
  uint32_t log(LogFormat format, std::span<const Value> arguments = {});
  // Returns, as an i64, the count that a kCounter, kHit or kGauge probe has reached, as far as the
  // compiler knows. In optimized code it is a constant; in all other code, and if nothing is known,
  // it is 0. `probe` is a result of probe() in this body.
  //
  // It is for bodies with two ways to do one thing. A compilation then keeps the one that pays:
  //
  //   b.branch(b.binary(Opcode::kGeU, b.known_count(taken), b.i64(1000)), by_table, one_by_one);
  //
  // The body must be correct for any number. One value never changes, but two calls may return
  // different numbers, even within one execution, because the code may be replaced. The number is
  // an estimate for all executions of this run (MethodProfile::estimates), or, if this run has
  // observed little, for one run of a saved profile. For a gauge it is the greatest value seen. In
  // an inlined body it is the number of the inlined body's own probe.
  Value known_count(uint32_t probe);

 private:
  friend struct BuilderAccess;  // hands the finished function to the compiler
  struct Impl;
  FunctionBuilder(std::unique_ptr<Impl> impl, Signature signature, std::string_view name);
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptier
