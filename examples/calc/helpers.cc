#include "helpers.h"

#include <algorithm>
#include <cmath>

#include "vm.h"

namespace calc::helper {
namespace {

using uptier::Type;

extern "C" {

Val help_arithmetic(Vm* vm, const Instr* at, Val a, Val b) noexcept {
  return arithmetic(*vm, at, a, b);
}
Val help_negate(Vm* vm, const Instr* at, Val a) noexcept { return negate(*vm, at, a); }
int32_t help_compare(Vm* vm, const Instr* at, Val a, Val b) noexcept {
  return compare(*vm, at, a, b) ? 1 : 0;
}
int32_t help_equal(Val a, Val b) noexcept { return equal(a, b) ? 1 : 0; }
double help_modulo(double a, double b) noexcept { return std::fmod(a, b); }
Val help_get_field(Vm* vm, const Instr* at, Val object) noexcept {
  return get_field(*vm, at, object);
}
void help_set_field(Vm* vm, const Instr* at, Val object, Val v) noexcept {
  set_field(*vm, at, object, v);
}
Val help_get_index(Vm* vm, const Instr* at, Val object, Val index) noexcept {
  return get_index(*vm, at, object, index);
}
void help_set_index(Vm* vm, const Instr* at, Val object, Val index, Val v) noexcept {
  set_index(*vm, at, object, index, v);
}
void help_push(Vm* vm, const Instr* at, Val array, Val v) noexcept {
  if (!vm->heap.push(static_cast<Array*>(as_object(array)), v)) vm->out_of_memory(at);
}
Val help_new_array(Vm* vm, const Instr* at) noexcept {
  Array* a = vm->heap.array(at->c);
  return a == nullptr ? vm->out_of_memory(at) : of_object(a);
}
Val help_new_record(Vm* vm, const Instr* at) noexcept {
  Record* r = vm->heap.record(vm->code.literals[static_cast<size_t>(at->d)]);
  return r == nullptr ? vm->out_of_memory(at) : of_object(r);
}
Val help_new_cell(Vm* vm, const Instr* at, Val v) noexcept { return new_cell(*vm, at, v); }
Val help_new_closure(Vm* vm, const Instr* at, Closure* self) noexcept {
  Proto& p = *vm->code.protos[static_cast<size_t>(at->d)];
  Closure* c = vm->heap.closure(&p, static_cast<uint32_t>(p.captures.size()));
  if (c == nullptr) return vm->out_of_memory(at);
  for (size_t i = 0; i < p.captures.size(); ++i) {
    if (!p.captures[i].local) c->cells[i] = self->cells[p.captures[i].index];
  }
  return of_object(c);
}
// A loop that does not run counts from 0 to 0.
int32_t help_for_from(Vm* vm, const Instr* at, Val from, Val to) noexcept {
  Val bounds[] = {from, to};
  return for_prepare(*vm, at, bounds) ? as_int(bounds[0]) : 0;
}
int32_t help_for_to(Vm* vm, const Instr* at, Val from, Val to) noexcept {
  Val bounds[] = {from, to};
  return for_prepare(*vm, at, bounds) ? as_int(bounds[1]) : 0;
}
const void* help_callee(Vm* vm, const Instr* at, Val f) noexcept {
  Closure* c = callee(*vm, at, f);
  return c == nullptr ? nullptr : c->proto->entry;
}
Val help_builtin(Vm* vm, const Instr* at, Val a, Val b, Val c) noexcept {
  const Val args[] = {a, b, c};
  return call_builtin(*vm, at, args);
}
Val help_print(Vm* vm, const Instr*, Val v, int32_t last) noexcept {
  print(*vm, v, last != 0);
  return vm->heap.nil();
}

}  // extern "C"

constexpr Type kI64 = Type::kI64, kI32 = Type::kI32, kF64 = Type::kF64, kNone = Type::kNone;

template <typename F>
uptier::HostFunction function(const char* name, F* f, std::vector<Type> params, Type result) {
  return {name, reinterpret_cast<const void*>(f), {std::move(params), result}};
}

}  // namespace

#define HELPER(id, name, result, ...) \
  const uptier::HostFunction id = function(#name, name, {__VA_ARGS__}, result)

HELPER(kArithmetic, help_arithmetic, kI64, kI64, kI64, kI64, kI64);
HELPER(kNegate, help_negate, kI64, kI64, kI64, kI64);
HELPER(kCompare, help_compare, kI32, kI64, kI64, kI64, kI64);
HELPER(kEqual, help_equal, kI32, kI64, kI64);
HELPER(kModulo, help_modulo, kF64, kF64, kF64);
HELPER(kGetField, help_get_field, kI64, kI64, kI64, kI64);
HELPER(kSetField, help_set_field, kNone, kI64, kI64, kI64, kI64);
HELPER(kGetIndex, help_get_index, kI64, kI64, kI64, kI64, kI64);
HELPER(kSetIndex, help_set_index, kNone, kI64, kI64, kI64, kI64, kI64);
HELPER(kPush, help_push, kNone, kI64, kI64, kI64, kI64);
HELPER(kNewArray, help_new_array, kI64, kI64, kI64);
HELPER(kNewRecord, help_new_record, kI64, kI64, kI64);
HELPER(kNewCell, help_new_cell, kI64, kI64, kI64, kI64);
HELPER(kNewClosure, help_new_closure, kI64, kI64, kI64, kI64);
HELPER(kForFrom, help_for_from, kI32, kI64, kI64, kI64, kI64);
HELPER(kForTo, help_for_to, kI32, kI64, kI64, kI64, kI64);
HELPER(kCallee, help_callee, kI64, kI64, kI64, kI64);
HELPER(kBuiltin, help_builtin, kI64, kI64, kI64, kI64, kI64, kI64);
HELPER(kPrint, help_print, kI64, kI64, kI64, kI64, kI32);

}  // namespace calc::helper
