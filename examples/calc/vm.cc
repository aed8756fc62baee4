#include "vm.h"

#include <cmath>

#include "uptier/runtime.h"

namespace calc {

std::string Vm::load(std::string_view source) {
  std::string wrong = compile(source, heap, code);
  if (!wrong.empty()) return wrong;
  globals.assign(code.globals, kNilVal);
  constexpr size_t kStack = 1 << 20;
  // Two more: builtins are given three registers always.
  stack = std::make_unique_for_overwrite<Val[]>(kStack + 2);
  top = stack.get();
  stack_end = top + kStack;
  return {};
}

Val Vm::fail(const Instr* at, const std::string& what) {
  if (failed) return kNilVal;
  failed = true;
  std::string in;
  for (const auto& p : code.protos) {
    if (place(at) >= p->begin && place(at) < p->end) in = p->name;
  }
  error = "line " + std::to_string(code.lines[place(at)]) + ", in " + in + ": " + what;
  if (tiers != nullptr) uptier::Runtime::raise(uptier::TrapCode::kHost);
  return kNilVal;
}

Val Vm::made(const Instr* at, const void* object) {
  if (object != nullptr) return of_object(object);
  return fail(at, "out of memory: the arena holds " + std::to_string(heap.limit() >> 20) +
                      " MiB (--memory=MIB)");
}

// Objects that compiled code and plans refer to live as long as the program, also when the
// runtime's worker reads them: functions that calls have met, and constants, all of which are
// interned.
void Vm::reach_roots() {
  heap.reach(globals.data(), globals.data() + globals.size());
  for (const auto& c : code.calls) {
    heap.reach(reinterpret_cast<uintptr_t>(c->first.load(std::memory_order_relaxed)));
  }
  heap.reach(stack.get(), top);
  heap.reach_stack(native_stack_base);
}

void FieldCache::remember(Entry e) {
  uint32_t n = count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < n && i < kSize; ++i) {
    if (entries[i].shape == e.shape) return;
  }
  if (n > kSize) return;
  if (n < kSize) entries[n] = e;
  count.store(n + 1, std::memory_order_release);  // pairs with the compiler's acquire
}

void CallCache::remember(Closure* f) {
  Closure* known = first.load(std::memory_order_relaxed);
  if (known == f) return;
  if (known == nullptr) return first.store(f, std::memory_order_release);  // with its proto
  many_closures.store(true, std::memory_order_relaxed);
  if (known->proto != f->proto) many_protos.store(true, std::memory_order_relaxed);
}

namespace {

std::string kind_name(Val v) {
  switch (kind_of(v)) {
    case kNil: return "nil";
    case kBool: return "a boolean";
    case kString: return "a string";
    case kArray: return "an array";
    case kRecord: return "a record";
    case kFunction: return "a function";
    default: return "a number";
  }
}

double on_doubles(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kDiv: return a / b;
    case Op::kFloorDiv: return std::floor(a / b);
    default: return std::fmod(a, b);
  }
}

// Compares two numbers, or the order of two strings with 0.
template <typename T>
bool holds(Op op, T a, T b) {
  switch (op) {
#define CALC_HOLDS(name, sign, ...) \
  case Op::kJump##name: return a sign b;
    CALC_COMPARISONS(CALC_HOLDS)
    default: return false;
  }
}

// Returns where an element is, or null after fail().
Val* element(Vm& vm, const Instr* at, Val object, Val index) {
  if (!is_int(index)) vm.see(at, kStranger);
  Row* a = as_array(object);
  if (a == nullptr) return vm.fail(at, "cannot index " + kind_name(object)), nullptr;
  double i = is_number(index) ? number(index) : -1;
  if (i >= 0 && i < a->length && i == std::floor(i)) return &a->data[static_cast<uint32_t>(i)];
  vm.fail(at, text_of(index) + " is no index of an array of " + std::to_string(a->length));
  return nullptr;
}

}  // namespace

extern "C" {

Val calc_arithmetic(Vm* vm, const Instr* at, Val a, Val b) noexcept {
  Op op = operation(at->op);
  if (is_number(a) && is_number(b)) {
    if (both_int(a, b)) vm->see(at, kOverflow);
    return of_double(on_doubles(op, number(a), number(b)));
  }
  vm->see(at, kStranger);
  String *s = as_string(a), *t = as_string(b);
  bool strings = op == Op::kAdd && s != nullptr && t != nullptr;
  if (strings) return vm->made(at, vm->heap.concat(s->view(), t->view()));
  return vm->fail(at, "cannot compute with " + kind_name(a) + " and " + kind_name(b));
}

Val calc_negate(Vm* vm, const Instr* at, Val a) noexcept {
  if (!is_number(a)) return vm->fail(at, "cannot negate " + kind_name(a));
  if (is_int(a)) vm->see(at, kOverflow);
  return of_double(-number(a));
}

int32_t calc_compare(Vm* vm, const Instr* at, Val a, Val b) noexcept {
  Op op = operation(at->op);
  if (is_number(a) && is_number(b)) return holds(op, number(a), number(b));
  vm->see(at, kStranger);
  String *s = as_string(a), *t = as_string(b);
  if (s != nullptr && t != nullptr) return holds(op, s->view().compare(t->view()), 0);
  if (op == Op::kJumpEqual) return a == b;
  vm->fail(at, "cannot compare " + kind_name(a) + " and " + kind_name(b));
  return 0;
}

Val calc_get_field(Vm* vm, const Instr* at, Val object) noexcept {
  FieldCache& c = vm->field(at);
  Row* r = as_record(object);
  if (r == nullptr) return vm->fail(at, kind_name(object) + " has no fields");
  int slot = r->shape->find(c.name);
  if (slot < 0) return vm->fail(at, "the record has no field '" + text_of(of_object(c.name)) + "'");
  c.remember({r->shape, static_cast<uint32_t>(slot)});
  return r->data[slot];
}

void calc_set_field(Vm* vm, const Instr* at, Val object, Val v) noexcept {
  FieldCache& c = vm->field(at);
  Row* r = as_record(object);
  if (r == nullptr) return void(vm->fail(at, kind_name(object) + " has no fields"));
  int slot = r->shape->find(c.name);
  if (slot >= 0) {
    c.remember({r->shape, static_cast<uint32_t>(slot)});
    r->data[slot] = v;
    return;
  }
  Shape* next = vm->heap.with_field(r->shape, c.name);
  c.remember({r->shape, r->length, next});
  if (!vm->heap.push(r, v)) return void(vm->made(at, nullptr));
  r->shape = next;
}

Val calc_get_index(Vm* vm, const Instr* at, Val object, Val index) noexcept {
  Val* e = element(*vm, at, object, index);
  return e == nullptr ? kNilVal : *e;
}

void calc_set_index(Vm* vm, const Instr* at, Val object, Val index, Val v) noexcept {
  Val* e = element(*vm, at, object, index);
  if (e != nullptr) *e = v;
}

Val calc_new_row(Vm* vm, const Instr* at) noexcept {
  return vm->made(at, vm->heap.row(vm->code.shapes[static_cast<size_t>(at->d)], at->c, kNilVal));
}

Val calc_new_closure(Vm* vm, const Instr* at, Val self) noexcept {
  Proto& p = *vm->code.protos[static_cast<size_t>(at->d)];
  Closure* c = vm->heap.closure(&p, p.captures.size());
  for (size_t i = 0; c != nullptr && i < p.captures.size(); ++i) {
    auto* outer = reinterpret_cast<Closure*>(self);
    if (!p.captures[i].local) c->cells[i] = outer->cells[p.captures[i].index];
  }
  return vm->made(at, c);
}

Val calc_new_cell(Vm* vm, const Instr* at, Val v) noexcept {
  Cell* c = vm->heap.cell(v);
  if (c == nullptr) vm->made(at, nullptr);
  return reinterpret_cast<Val>(c);
}

uint64_t calc_for_bounds(Vm* vm, const Instr* at, Val from, Val to) noexcept {
  if (!is_number(from) || !is_number(to)) return vm->fail(at, "the bounds of a loop are numbers");
  double first = number(from), last = std::ceil(number(to));
  if (!(first < last)) return 0;
  if (first == std::floor(first) && first >= INT32_MIN && last <= INT32_MAX) {
    return static_cast<uint32_t>(first) | static_cast<uint64_t>(last) << 32;
  }
  return vm->fail(at, "a loop counts from a whole number, to 2147483647 at most");
}

void calc_enter(Vm* vm, const Proto* p) noexcept { vm->trace.enter(*p); }

void calc_leave(Vm* vm) noexcept { vm->trace.leave_until(vm->trace.open_calls() - 1); }

Val calc_callee(Vm* vm, const Instr* at, Val f) noexcept {
  Closure* c = as_closure(f);
  if (c == nullptr) return vm->fail(at, "cannot call " + kind_name(f)), 0;
  if (c->proto->params == at->c) return reinterpret_cast<Val>(c);
  vm->fail(at, c->proto->name + " takes " + std::to_string(c->proto->params) + " arguments, not " +
                   std::to_string(at->c));
  return 0;
}

}  // extern "C"
}  // namespace calc
