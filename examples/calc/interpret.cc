#include "interpret.h"

#include <algorithm>

namespace calc {
namespace {

// ---- Fast paths: whether they apply, and what they give. Each is wanted in the loop itself.
#define FAST [[gnu::always_inline]] inline

template <typename F>
FAST bool on_doubles(Val a, Val b, Val& to, F f) {
  if (is_double(a) && is_double(b)) return to = of_double(f(as_double(a), as_double(b))), true;
  if (!is_number(a) || !is_number(b)) return false;
  return to = of_double(f(number(a), number(b))), true;
}
// A sum, difference or product: of ints unless that overflows.
#define CHECKED(name, builtin, op, minus_zero)                                \
  FAST bool name(Val a, Val b, Val& to) {                                     \
    int32_t result;                                                           \
    if (!both_int(a, b)) {                                                    \
      return on_doubles(a, b, to, [](double x, double y) { return x op y; }); \
    }                                                                         \
    if (builtin(as_int(a), as_int(b), &result) || (minus_zero)) return false; \
    return to = of_int(result), true;                                         \
  }
CHECKED(add, __builtin_add_overflow, +, false)
CHECKED(sub, __builtin_sub_overflow, -, false)
CHECKED(mul, __builtin_mul_overflow, *, result == 0 && (as_int(a) | as_int(b)) < 0)
FAST bool div(Val a, Val b, Val& to) {
  return on_doubles(a, b, to, [](double x, double y) { return x / y; });
}
// For such ints, what the machine does rounds down and takes the right sign.
FAST bool whole(Val a, Val b) { return both_int(a, b) && as_int(a) >= 0 && as_int(b) > 0; }
FAST bool floor_div(Val a, Val b, Val& to) {
  return whole(a, b) && (to = of_int(as_int(a) / as_int(b)), true);
}
FAST bool mod(Val a, Val b, Val& to) {
  return whole(a, b) && (to = of_int(as_int(a) % as_int(b)), true);
}

template <typename F>
FAST bool compare(Vm& vm, const Instr* at, Val a, Val b, F f) {
  if (both_int(a, b)) return f(as_int(a), as_int(b));
  if (is_double(a) && is_double(b)) return f(as_double(a), as_double(b));
  return calc_compare(&vm, at, a, b) != 0;
}

FAST bool field(FieldCache& c, Val object, Record*& record, FieldCache::Entry*& found) {
  if (!is_object(object)) return false;
  record = reinterpret_cast<Record*>(object - kObjectTag);
  for (FieldCache::Entry& e : c.entries) {
    if (e.shape == record->shape) return found = &e, true;
  }
  return false;
}
FAST bool element(Val object, Val index, Val*& place) {
  if (!is_object(object) || !is_int(index)) return false;
  auto* a = reinterpret_cast<Array*>(object - kObjectTag);
  auto i = static_cast<uint32_t>(as_int(index));
  if (a->shape != &Array::kShape || i >= a->length) return false;
  return place = a->data + i, true;
}

void note_callee(CallCache& c, Proto* p) {
  Proto* first = c.first.load(std::memory_order_relaxed);
  if (first == nullptr) return c.first.store(p, std::memory_order_relaxed);
  if (first != p) c.many.store(true, std::memory_order_relaxed);
}

// ---- The loop

#define CASE(name) do_##name:
#define NEXT                                   \
  do {                                         \
    at = pc++;                                 \
    goto* table[static_cast<uint8_t>(at->op)]; \
  } while (false)
#define A r[at->a]
#define B r[at->b]
#define C r[at->c]
#define SEE(v) \
  if constexpr (kTiered) note(seen[at - code], kReached | kind_of(v))
#define CHECK                 \
  if (vm.failed) [[unlikely]] \
  return 0
#define COMPUTE(id, fast, b, c)               \
  CASE(id) if (!fast(b, c, A)) [[unlikely]] { \
    A = calc_arithmetic(&vm, at, b, c);       \
    CHECK;                                    \
  }                                           \
  NEXT;
#define ARITHMETIC(name, fast) \
  COMPUTE(k##name, fast, B, C) \
  COMPUTE(k##name##K, fast, B, k[at->d])
#define JUMP_IF(id, condition)    \
  CASE(id) {                      \
    bool taken = condition;       \
    CHECK;                        \
    if (taken) pc = code + at->d; \
    NEXT;                         \
  }
#define HOLDS(op, x, y) compare(vm, at, x, y, [](auto m, auto n) { return m op n; })
#define COMPARISON(name, op)                           \
  CASE(k##name) A = of_bool(HOLDS(op, B, C));          \
  CHECK;                                               \
  NEXT;                                                \
  JUMP_IF(kJump##name, HOLDS(op, A, B))                \
  JUMP_IF(kJumpNot##name, !HOLDS(op, A, B))            \
  JUMP_IF(kJump##name##K, HOLDS(op, A, k[at->wide()])) \
  JUMP_IF(kJumpNot##name##K, !HOLDS(op, A, k[at->wide()]))

template <bool kTiered>
Val run(Vm& vm, Closure* self, Val* r, const Instr* pc) {
#define CALC_X(id, reads, writes) &&do_##id,
  static const void* const table[] = {CALC_OPCODES};
#undef CALC_X
  const Instr* const code = vm.code.instrs.data();
  const Val* const k = vm.code.constants.data();
  [[maybe_unused]] std::atomic<uint16_t>* const seen = vm.code.seen.get();
  const Instr* at;
  NEXT;

  CASE(kMove) A = B;
  NEXT;
  CASE(kConst) A = k[at->d];
  NEXT;
  CASE(kGetGlobal) A = vm.globals[static_cast<size_t>(at->d)];
  SEE(A);
  NEXT;
  CASE(kSetGlobal) vm.globals[static_cast<size_t>(at->d)] = A;
  NEXT;
  CASE(kGetCapture) A = self->cells[at->d]->value;
  SEE(A);
  NEXT;
  CASE(kSetCapture) self->cells[at->d]->value = A;
  NEXT;
  CASE(kNewCell) A = reinterpret_cast<Val>(calc_new_cell(&vm, at, A));
  CHECK;
  NEXT;
  CASE(kGetCell) A = reinterpret_cast<Cell*>(B)->value;
  SEE(A);
  NEXT;
  CASE(kSetCell) reinterpret_cast<Cell*>(A)->value = B;
  NEXT;

  ARITHMETIC(Add, add)
  ARITHMETIC(Sub, sub)
  ARITHMETIC(Mul, mul)
  ARITHMETIC(Div, div)
  ARITHMETIC(FloorDiv, floor_div)
  ARITHMETIC(Mod, mod)
  CASE(kNeg) {
    Val v = B;
    if (is_int(v) && as_int(v) != 0 && as_int(v) != INT32_MIN) {
      A = of_int(-as_int(v));
    } else {
      A = is_double(v) ? of_double(-as_double(v)) : calc_negate(&vm, at, v);
      CHECK;
    }
    NEXT;
  }
  CASE(kNot) A = of_bool(!truthy(B));
  NEXT;
  COMPARISON(Less, <)
  COMPARISON(LessEqual, <=)
  COMPARISON(Greater, >)
  COMPARISON(GreaterEqual, >=)
  COMPARISON(Equal, ==)

  CASE(kJump) pc = code + at->d;
  NEXT;
  JUMP_IF(kJumpIf, truthy(A))
  JUMP_IF(kJumpUnless, !truthy(A))
  CASE(kForLoop) {
    int32_t next = as_int(A) + 1;
    if (next >= as_int(r[at->a + 1])) NEXT;
    A = of_int(next);
  }
  CASE(kLoop) pc = code + at->d;
  if constexpr (kTiered) {
    Val result;
    if (--*self->proto->loop_countdown <= 0 && vm.loop_event(vm, self, r, pc, result))
      return result;
  }
  NEXT;
  CASE(kForPrepare) {
    Val &from = A, &to = r[at->a + 1];
    if (!both_int(from, to)) {
      uint64_t bounds = calc_for_bounds(&vm, at, from, to);
      CHECK;
      from = of_int(static_cast<int32_t>(bounds));
      to = of_int(static_cast<int32_t>(bounds >> 32));
    }
    if (as_int(from) >= as_int(to)) pc = code + at->d;
    NEXT;
  }

  CASE(kGetField) {
    FieldCache::Entry* e;
    Record* record;
    if (field(vm.cache(at), B, record, e)) [[likely]] {
      A = record->slot(e->slot);
    } else {
      A = calc_get_field(&vm, at, B);
      CHECK;
    }
    SEE(A);
    NEXT;
  }
  CASE(kSetField) {
    FieldCache::Entry* e;
    Record* record;
    if (field(vm.cache(at), A, record, e) && e->next == nullptr) [[likely]] {
      record->slot(e->slot) = B;
    } else {
      calc_set_field(&vm, at, A, B);
      CHECK;
    }
    NEXT;
  }
  CASE(kGetIndex) {
    Val* place;
    if (element(B, C, place)) [[likely]] {
      A = *place;
    } else {
      A = calc_get_index(&vm, at, B, C);
      CHECK;
    }
    SEE(A);
    NEXT;
  }
  CASE(kSetIndex) {
    Val* place;
    if constexpr (kTiered) note(seen[at - code], kReached);
    if (element(A, B, place)) [[likely]] {
      *place = C;
    } else {
      calc_set_index(&vm, at, A, B, C);
      CHECK;
    }
    NEXT;
  }
  CASE(kNewArray) {
    Val v = calc_new_array(&vm, at);
    CHECK;
    std::copy_n(&B, at->c, as<Array>(v)->data);
    A = v;
    NEXT;
  }
  CASE(kNewRecord) {
    Val v = calc_new_record(&vm, at);
    CHECK;
    for (uint32_t i = 0; i < at->c; ++i) as<Record>(v)->slot(i) = r[at->b + i];
    A = v;
    NEXT;
  }
  CASE(kClosure) {
    Val v = calc_new_closure(&vm, at, self);
    CHECK;
    auto* f = as<Closure>(v);
    for (size_t i = 0; i < f->proto->captures.size(); ++i) {
      const Proto::Capture& from = f->proto->captures[i];
      if (from.local) f->cells[i] = reinterpret_cast<Cell*>(r[from.index]);
    }
    A = v;
    NEXT;
  }
  CASE(kCall) {
    Closure* f = calc_callee(&vm, at, A);
    CHECK;
    if constexpr (kTiered) {
      note_callee(*vm.code.calls[static_cast<size_t>(at->d)], f->proto);
      A = call_entry(f->proto->entry, f, &A + 1, at->c);
    } else {
      A = interpret(vm, Interpreter::kPlain, f, &A + 1);
    }
    CHECK;
    SEE(A);
    NEXT;
  }
  CASE(kBuiltin) A = kBuiltins[at->b].run(&vm, at, A, r[at->a + 1], r[at->a + 2]);
  CHECK;
  SEE(A);
  NEXT;
  CASE(kReturn) return A;
}

}  // namespace

Val* open_window(Vm& vm, const Closure* f) {
  const Proto& p = *f->proto;
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (vm.top + p.registers > vm.stack_end || here < vm.native_stack_end) [[unlikely]] {
    vm.fail(vm.code.instrs.data() + p.begin, "the stack is full");
    return nullptr;
  }
  Val* r = vm.top;
  vm.top = r + p.registers;
  return r;
}

Val interpret(Vm& vm, Interpreter which, Closure* f, const Val* args) {
  const Proto& p = *f->proto;
  Val* r = open_window(vm, f);
  if (r == nullptr) return 0;
  for (uint32_t i = 0; i < p.params; ++i) r[i] = args[i];
  if (which == Interpreter::kTiered) {
    for (uint32_t i = 0; i < p.params; ++i) {
      note(vm.code.params_seen[p.index * kMaxParams + i], kReached | kind_of(r[i]));
    }
  }
  const Instr* pc = vm.code.instrs.data() + p.begin;
  Val result = which == Interpreter::kPlain ? run<false>(vm, f, r, pc) : run<true>(vm, f, r, pc);
  vm.top = r;
  return result;
}

Val resume(Vm& vm, Closure* f, Val* r, const Instr* pc) {
  Val result = run<true>(vm, f, r, pc);
  vm.top = r;
  return result;
}

Val call_entry(const void* entry, Closure* f, const Val* a, unsigned count) {
  using V = Val;
  auto* e = const_cast<void*>(entry);
  switch (count) {
    case 0: return reinterpret_cast<V (*)(Closure*)>(e)(f);
    case 1: return reinterpret_cast<V (*)(Closure*, V)>(e)(f, a[0]);
    case 2: return reinterpret_cast<V (*)(Closure*, V, V)>(e)(f, a[0], a[1]);
    case 3: return reinterpret_cast<V (*)(Closure*, V, V, V)>(e)(f, a[0], a[1], a[2]);
    case 4: return reinterpret_cast<V (*)(Closure*, V, V, V, V)>(e)(f, a[0], a[1], a[2], a[3]);
    case 5:
      return reinterpret_cast<V (*)(Closure*, V, V, V, V, V)>(e)(f, a[0], a[1], a[2], a[3], a[4]);
    default:
      return reinterpret_cast<V (*)(Closure*, V, V, V, V, V, V)>(e)(f, a[0], a[1], a[2], a[3], a[4],
                                                                    a[5]);
  }
}

}  // namespace calc
