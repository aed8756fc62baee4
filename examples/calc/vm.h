// vm.h: the state of a running program, and what is too rare or too long for fast paths. The
// interpreter and compiled code call the same functions.
//
//   Thread: one. Errors: `fail` notes the message and returns nil; whoever sees `failed` returns.
#pragma once

#include <string>
#include <string_view>

#include "bytecode.h"

namespace calc {

struct Vm {
  explicit Vm(size_t memory) : heap(memory) {}

  Heap heap;
  Code code;
  std::vector<Val> globals;
  std::vector<std::string> arguments;

  std::unique_ptr<Val[]> stack;  // windows of registers
  Val* top = nullptr;
  Val* stack_end = nullptr;
  uintptr_t native_stack_end = 0;  // recursion stops when the thread's stack is this low

  bool failed = false;
  std::string error;

  // With a runtime; see tiers.h.
  class Tiers* tiers = nullptr;
  void (*raise)() = nullptr;  // tells the runtime of an error
  bool (*loop_event)(Vm& vm, Closure* f, const Val* r, const Instr* header, Val& result) = nullptr;

  std::string load(std::string_view source);
  // Notes an error at an instruction. Returns nil.
  Val fail(const Instr* at, const std::string& what);
  Val out_of_memory(const Instr* at);

  uint32_t place(const Instr* at) const { return static_cast<uint32_t>(at - code.instrs.data()); }
  const Proto& proto_at(const Instr* at) const;
  FieldCache& cache(const Instr* at) { return *code.caches[static_cast<size_t>(at->d)]; }
  void see(const Instr* at, unsigned bits) { note(code.seen[place(at)], bits); }
};

inline bool truthy(const Vm& vm, Val v) {
  return v != vm.heap.nil() && v != vm.heap.boolean(false);
}

// Each does what the instruction says, whatever the operands are.
Val arithmetic(Vm& vm, const Instr* at, Val a, Val b);
// a < b, a <= b or a == b, as the instruction is about. One that asks for > has a constant to its
// right and comes with its operands swapped.
bool compare(Vm& vm, const Instr* at, Val a, Val b);
bool equal(Val a, Val b);
Val negate(Vm& vm, const Instr* at, Val a);
Val get_field(Vm& vm, const Instr* at, Val object);
void set_field(Vm& vm, const Instr* at, Val object, Val v);
Val get_index(Vm& vm, const Instr* at, Val object, Val index);
void set_index(Vm& vm, const Instr* at, Val object, Val index, Val v);
Val new_array(Vm& vm, const Instr* at, const Val* values);
Val new_record(Vm& vm, const Instr* at, const Val* values);
Val new_cell(Vm& vm, const Instr* at, Val v);
// `r` is the window of the function around, `self` its closure.
Val new_closure(Vm& vm, const Instr* at, const Closure* self, const Val* r);
// Makes ints of a loop's bounds; returns whether the loop runs at all.
bool for_prepare(Vm& vm, const Instr* at, Val* counter);
// Returns the function of a call that fits its arguments, or null after fail().
Closure* callee(Vm& vm, const Instr* at, Val f);
Val call_builtin(Vm& vm, const Instr* at, const Val* args);
void print(Vm& vm, Val v, bool last);  // `last`: ends the line, else with a space

std::string text_of(Vm& vm, Val v);

}  // namespace calc
