// vm.h: the state of a running program, and the operations that are too rare or too long for fast
// paths. The interpreter and compiled code call the same functions.
//
//   Thread: one. Errors: `fail` notes the message and returns nil; callers return if `failed`.
#pragma once

#include "bytecode.h"
#include "trace.h"

namespace calc {

struct Vm {
  explicit Vm(size_t memory) : heap(memory) {
    heap.roots = [this] { reach_roots(); };
    heap.trace = &trace;
  }

  Trace trace;
  Heap heap;
  Code code;
  std::vector<Val> globals;
  std::vector<std::string> arguments;
  std::string file;  // of the program, for positions

  std::unique_ptr<Val[]> stack;  // windows of registers
  Val* top = nullptr;
  Val* stack_end = nullptr;
  uintptr_t native_stack_end = 0;           // recursion stops when the thread's stack is this low
  const void* native_stack_base = nullptr;  // no frame above refers to objects

  bool failed = false;
  std::string error;

  class Tiers* tiers = nullptr;  // with a runtime

  std::string load(std::string_view source);
  void reach_roots();
  // Notes an error at an instruction. Returns nil.
  Val fail(const Instr* at, const std::string& what);
  // Returns the object of a new value, or fails if there is none.
  Val made(const Instr* at, const void* object);

  uint32_t place(const Instr* at) const { return static_cast<uint32_t>(at - code.instrs.data()); }
  FieldCache& field(const Instr* at) { return *code.fields[static_cast<size_t>(at->d)]; }
  CallCache& call(const Instr* at) { return *code.calls[static_cast<size_t>(at->d)]; }
  void see(const Instr* at, unsigned bits) { note(code.seen[place(at)], bits); }
};

// Each does what the instruction says, whatever the operands are. These are the C functions that
// compiled code calls (emit.h, HELPER).
extern "C" {
Val calc_arithmetic(Vm* vm, const Instr* at, Val a, Val b) noexcept;
Val calc_negate(Vm* vm, const Instr* at, Val a) noexcept;
int32_t calc_compare(Vm* vm, const Instr* at, Val a, Val b) noexcept;
Val calc_get_field(Vm* vm, const Instr* at, Val object) noexcept;
void calc_set_field(Vm* vm, const Instr* at, Val object, Val v) noexcept;
Val calc_get_index(Vm* vm, const Instr* at, Val object, Val index) noexcept;
void calc_set_index(Vm* vm, const Instr* at, Val object, Val index, Val v) noexcept;
// The caller must still fill the new objects: elements, fields, local cells.
Val calc_new_row(Vm* vm, const Instr* at) noexcept;
Val calc_new_closure(Vm* vm, const Instr* at, Val self) noexcept;
Val calc_new_cell(Vm* vm, const Instr* at, Val v) noexcept;  // the pointer
// Returns a loop's bounds: ints, the first in the lower half. A loop that does not run has 0, 0.
uint64_t calc_for_bounds(Vm* vm, const Instr* at, Val from, Val to) noexcept;
// Tell tracing tools of a call and of its end; only in code that was compiled for that.
void calc_enter(Vm* vm, const Proto* p) noexcept;
void calc_leave(Vm* vm) noexcept;
// Returns a pointer to the function of a call that fits its arguments, or null after fail().
Val calc_callee(Vm* vm, const Instr* at, Val f) noexcept;
}

// The functions that the language brings along: an instruction's operand b is an index.
struct Builtin {
  const char* name;
  uint32_t arguments;
  Val (*run)(Vm* vm, const Instr* at, Val a, Val b, Val c) noexcept;
  unsigned result = kAnyKind;  // the kinds that it may be of
};
enum BuiltinId : uint8_t { kPrint, kSqrt, kLen, kPush };
extern const std::vector<Builtin> kBuiltins;  // the first are in the order of BuiltinId

std::string text_of(Val v);

}  // namespace calc
