#include "vm.h"

#include <algorithm>
#include <cmath>

#include "ast.h"

namespace calc {

std::string Vm::load(std::string_view source) {
  Program p = parse(source);
  std::string wrong = p.error.empty() ? compile(p, heap, code) : p.error;
  if (!wrong.empty()) return wrong;
  globals.assign(code.globals, heap.nil());
  constexpr size_t kStack = 1 << 20;
  stack = std::make_unique<Val[]>(kStack);
  top = stack.get();
  stack_end = stack.get() + kStack;
  return {};
}

const Proto& Vm::proto_at(const Instr* at) const {
  for (const auto& p : code.protos) {
    if (place(at) >= p->begin && place(at) < p->end) return *p;
  }
  return *code.protos[0];
}

Val Vm::fail(const Instr* at, const std::string& what) {
  if (failed) return heap.nil();
  failed = true;
  error =
      "line " + std::to_string(code.lines[place(at)]) + ", in " + proto_at(at).name + ": " + what;
  if (raise != nullptr) raise();
  return heap.nil();
}

Val Vm::out_of_memory(const Instr* at) {
  return fail(at, "out of memory: the arena holds " + std::to_string(heap.limit() >> 20) +
                      " MiB (--memory=MIB)");
}

namespace {

const char* kind_name(Val v) {
  switch (kind_of(v)) {
    case kInt:
    case kDouble: return "a number";
    case kNil: return "nil";
    case kBool: return "a boolean";
    case kString: return "a string";
    case kArray: return "an array";
    case kRecord: return "a record";
    case kFunction: return "a function";
  }
  return "?";
}

// The operation of an instruction with or without a constant.
Op plain(Op op) {
  bool k = op >= Op::kAddK && op <= Op::kModK;
  return k ? static_cast<Op>(static_cast<int>(op) - static_cast<int>(Op::kAddK) +
                             static_cast<int>(Op::kAdd))
           : op;
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

// Whether an index is one, and which.
bool to_index(Val v, uint32_t length, uint32_t& index) {
  double d = is_number(v) ? number(v) : -1;
  if (!(d >= 0 && d < length)) return false;
  index = static_cast<uint32_t>(d);
  return index == d;
}

Shape* shape_of(Val v) { return is_object(v) ? as_object(v)->shape : nullptr; }

// Remembers where a shape has a field, for the next time.
void remember(FieldCache& c, FieldCache::Entry e) {
  uint32_t count = c.count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    if (c.entries[i].shape == e.shape) return;
  }
  if (count == FieldCache::kSize) return c.overflowed.store(true, std::memory_order_relaxed);
  c.entries[count] = e;
  c.count.store(count + 1, std::memory_order_release);  // pairs with the compiler's acquire
}

}  // namespace

Val arithmetic(Vm& vm, const Instr* at, Val a, Val b) {
  Op op = plain(at->op);
  if (is_number(a) && is_number(b)) {
    if (both_int(a, b)) vm.see(at, kOverflow);
    return of_double(on_doubles(op, number(a), number(b)));
  }
  vm.see(at, kStranger);
  if (op == Op::kAdd && shape_of(a) == &vm.heap.string_shape &&
      shape_of(b) == &vm.heap.string_shape) {
    String* s = vm.heap.concat(static_cast<String*>(as_object(a))->view(),
                               static_cast<String*>(as_object(b))->view());
    return s == nullptr ? vm.out_of_memory(at) : of_object(s);
  }
  return vm.fail(at, std::string("cannot compute with ") + kind_name(a) + " and " + kind_name(b));
}

bool equal(Val a, Val b) {
  if (is_number(a) && is_number(b)) return number(a) == number(b);
  if (a == b) return true;
  if (!is_object(a) || !is_object(b)) return false;
  bool strings = as_object(a)->shape->kind == kString && as_object(b)->shape->kind == kString;
  return strings &&
         static_cast<String*>(as_object(a))->view() == static_cast<String*>(as_object(b))->view();
}

bool compare(Vm& vm, const Instr* at, Val a, Val b) {
  Op op = at->op;
  bool equality = op == Op::kEqual || op == Op::kNotEqual || op == Op::kJumpEqual ||
                  op == Op::kJumpNotEqual || op == Op::kJumpEqualK || op == Op::kJumpNotEqualK;
  if (equality) return equal(a, b);
  bool or_equal = op == Op::kLessEqual || op == Op::kJumpLessEqual || op == Op::kJumpNotLessEqual ||
                  op == Op::kJumpLessEqualK || op == Op::kJumpNotLessEqualK ||
                  op == Op::kJumpGreaterEqualK || op == Op::kJumpNotGreaterEqualK;
  if (is_number(a) && is_number(b)) {
    return or_equal ? number(a) <= number(b) : number(a) < number(b);
  }
  vm.see(at, kStranger);
  if (shape_of(a) == &vm.heap.string_shape && shape_of(b) == &vm.heap.string_shape) {
    int order = static_cast<String*>(as_object(a))
                    ->view()
                    .compare(static_cast<String*>(as_object(b))->view());
    return or_equal ? order <= 0 : order < 0;
  }
  vm.fail(at, std::string("cannot compare ") + kind_name(a) + " and " + kind_name(b));
  return false;
}

Val negate(Vm& vm, const Instr* at, Val a) {
  if (!is_number(a)) return vm.fail(at, std::string("cannot negate ") + kind_name(a));
  vm.see(at, kOverflow);
  return of_double(-number(a));
}

Val get_field(Vm& vm, const Instr* at, Val object) {
  FieldCache& c = vm.cache(at);
  Shape* shape = shape_of(object);
  if (shape == nullptr || shape->kind != kRecord) {
    return vm.fail(at, std::string(kind_name(object)) + " has no fields");
  }
  int slot = shape->find(c.name);
  if (slot < 0) return vm.fail(at, "the record has no field '" + std::string(c.name->view()) + "'");
  remember(c, {shape, static_cast<uint32_t>(slot)});
  return static_cast<Record*>(as_object(object))->slot(static_cast<uint32_t>(slot));
}

void set_field(Vm& vm, const Instr* at, Val object, Val v) {
  FieldCache& c = vm.cache(at);
  Shape* shape = shape_of(object);
  if (shape == nullptr || shape->kind != kRecord) {
    vm.fail(at, std::string(kind_name(object)) + " has no fields");
    return;
  }
  auto* record = static_cast<Record*>(as_object(object));
  int slot = shape->find(c.name);
  if (slot >= 0) {
    remember(c, {shape, static_cast<uint32_t>(slot)});
    record->slot(static_cast<uint32_t>(slot)) = v;
    return;
  }
  Shape* next = vm.heap.with_field(shape, c.name);
  remember(c, {shape, static_cast<uint32_t>(next->fields.size()) - 1, next});
  if (!vm.heap.add_field(record, next, v)) vm.out_of_memory(at);
}

Val get_index(Vm& vm, const Instr* at, Val object, Val index) {
  vm.see(at, is_int(index) ? 0 : kStranger);
  Shape* shape = shape_of(object);
  uint32_t i = 0;
  if (shape == &vm.heap.array_shape) {
    auto* a = static_cast<Array*>(as_object(object));
    if (to_index(index, a->length, i)) return a->data[i];
    return vm.fail(at,
                   text_of(vm, index) + " is no index of an array of " + std::to_string(a->length));
  }
  vm.see(at, kStranger);
  return vm.fail(at, std::string("cannot index ") + kind_name(object));
}

void set_index(Vm& vm, const Instr* at, Val object, Val index, Val v) {
  vm.see(at, is_int(index) ? 0 : kStranger);
  uint32_t i = 0;
  if (shape_of(object) != &vm.heap.array_shape) {
    vm.fail(at, std::string("cannot index ") + kind_name(object));
    return;
  }
  auto* a = static_cast<Array*>(as_object(object));
  if (!to_index(index, a->length, i)) {
    vm.fail(at, text_of(vm, index) + " is no index of an array of " + std::to_string(a->length));
    return;
  }
  a->data[i] = v;
}

Val new_array(Vm& vm, const Instr* at, const Val* values) {
  Array* a = vm.heap.array(at->c);
  if (a == nullptr) return vm.out_of_memory(at);
  std::copy_n(values, at->c, a->data);
  return of_object(a);
}

Val new_record(Vm& vm, const Instr* at, const Val* values) {
  Record* r = vm.heap.record(vm.code.literals[static_cast<size_t>(at->d)]);
  if (r == nullptr) return vm.out_of_memory(at);
  for (uint32_t i = 0; i < at->c; ++i) r->slot(i) = values[i];
  return of_object(r);
}

Val new_cell(Vm& vm, const Instr* at, Val v) {
  Cell* c = vm.heap.cell(v);
  return c == nullptr ? vm.out_of_memory(at) : of_object(c);
}

Val new_closure(Vm& vm, const Instr* at, const Closure* self, const Val* r) {
  Proto& p = *vm.code.protos[static_cast<size_t>(at->d)];
  Closure* c = vm.heap.closure(&p, static_cast<uint32_t>(p.captures.size()));
  if (c == nullptr) return vm.out_of_memory(at);
  for (size_t i = 0; i < p.captures.size(); ++i) {
    const Proto::Capture& from = p.captures[i];
    c->cells[i] = from.local ? reinterpret_cast<Cell*>(r[from.index]) : self->cells[from.index];
  }
  return of_object(c);
}

bool for_prepare(Vm& vm, const Instr* at, Val* counter) {
  if (!is_number(counter[0]) || !is_number(counter[1])) {
    vm.fail(at, "the bounds of a loop are numbers");
    return false;
  }
  double from = number(counter[0]), to = std::ceil(number(counter[1]));
  if (!(from < to)) return false;
  if (from != std::floor(from) || from < INT32_MIN || to > INT32_MAX) {
    vm.fail(at, "a loop counts from a whole number, to 2147483647 at most");
    return false;
  }
  counter[0] = of_int(static_cast<int32_t>(from));
  counter[1] = of_int(static_cast<int32_t>(to));
  return true;
}

Closure* callee(Vm& vm, const Instr* at, Val f) {
  if (shape_of(f) != &vm.heap.function_shape) {
    vm.fail(at, std::string("cannot call ") + kind_name(f));
    return nullptr;
  }
  auto* c = static_cast<Closure*>(as_object(f));
  if (c->proto->params == at->c) return c;
  vm.fail(at, c->proto->name + " takes " + std::to_string(c->proto->params) + " arguments, not " +
                  std::to_string(at->c));
  return nullptr;
}

}  // namespace calc
