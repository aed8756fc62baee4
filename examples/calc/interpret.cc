#include "interpret.h"

#include <algorithm>
#include <cmath>

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
FAST bool add(Val a, Val b, Val& to) {
  int32_t sum;
  if (both_int(a, b)) {
    if (__builtin_add_overflow(as_int(a), as_int(b), &sum)) return false;
    return to = of_int(sum), true;
  }
  return on_doubles(a, b, to, [](double x, double y) { return x + y; });
}
FAST bool sub(Val a, Val b, Val& to) {
  int32_t difference;
  if (both_int(a, b)) {
    if (__builtin_sub_overflow(as_int(a), as_int(b), &difference)) return false;
    return to = of_int(difference), true;
  }
  return on_doubles(a, b, to, [](double x, double y) { return x - y; });
}
// No int is minus zero.
FAST bool mul(Val a, Val b, Val& to) {
  int32_t product;
  if (both_int(a, b)) {
    if (__builtin_mul_overflow(as_int(a), as_int(b), &product)) return false;
    if (product == 0 && (as_int(a) | as_int(b)) < 0) return false;
    return to = of_int(product), true;
  }
  return on_doubles(a, b, to, [](double x, double y) { return x * y; });
}
FAST bool div(Val a, Val b, Val& to) {
  return on_doubles(a, b, to, [](double x, double y) { return x / y; });
}
FAST bool floor_div(Val a, Val b, Val& to) {
  if (!both_int(a, b) || as_int(a) < 0 || as_int(b) <= 0) return false;
  return to = of_int(as_int(a) / as_int(b)), true;
}
FAST bool mod(Val a, Val b, Val& to) {
  if (!both_int(a, b) || as_int(a) < 0 || as_int(b) <= 0) return false;
  return to = of_int(as_int(a) % as_int(b)), true;
}

template <bool kOrEqual>
FAST bool less(Vm& vm, const Instr* at, Val a, Val b) {
  if (both_int(a, b)) return kOrEqual ? as_int(a) <= as_int(b) : as_int(a) < as_int(b);
  if (is_double(a) && is_double(b)) {
    return kOrEqual ? as_double(a) <= as_double(b) : as_double(a) < as_double(b);
  }
  if (is_number(a) && is_number(b)) {
    return kOrEqual ? number(a) <= number(b) : number(a) < number(b);
  }
  return compare(vm, at, a, b);
}
FAST bool same(Val a, Val b) { return both_int(a, b) ? a == b : equal(a, b); }

FAST bool field(FieldCache& c, Val object, FieldCache::Entry*& found) {
  if (!is_object(object)) return false;
  Shape* shape = as_object(object)->shape;
  for (FieldCache::Entry& e : c.entries) {
    if (e.shape == shape) return found = &e, true;
  }
  return false;
}
FAST bool element(const Vm& vm, Val object, Val index, Val*& at) {
  if (!is_object(object) || as_object(object)->shape != &vm.heap.array_shape || !is_int(index)) {
    return false;
  }
  auto* a = static_cast<Array*>(as_object(object));
  auto i = static_cast<uint32_t>(as_int(index));
  return at = a->data + i, i < a->length;
}

void note_callee(CallCache& c, Proto* p) {
  Proto* first = c.first.load(std::memory_order_relaxed);
  if (first == nullptr) {
    c.first.store(p, std::memory_order_relaxed);
  } else if (first != p) {
    c.many.store(true, std::memory_order_relaxed);
  }
}

// ---- The loop

#define CASE(name) do_##name:
#define NEXT                                   \
  do {                                         \
    at = pc++;                                 \
    goto* table[static_cast<uint8_t>(at->op)]; \
  } while (false)
#define SEE(v) \
  if constexpr (kTiered) note(seen[at - code], kReached | kind_of(v))
#define CHECK                 \
  if (vm.failed) [[unlikely]] \
  return 0
#define ARITHMETIC(name, fast)                                          \
  CASE(name) if (!fast(r[at->b], r[at->c], r[at->a])) [[unlikely]] {    \
    r[at->a] = arithmetic(vm, at, r[at->b], r[at->c]);                  \
    CHECK;                                                              \
  }                                                                     \
  NEXT;                                                                 \
  CASE(name##K) if (!fast(r[at->b], k[at->d], r[at->a])) [[unlikely]] { \
    r[at->a] = arithmetic(vm, at, r[at->b], k[at->d]);                  \
    CHECK;                                                              \
  }                                                                     \
  NEXT
#define JUMP_WHEN(name, condition) \
  CASE(name) {                     \
    bool taken = condition;        \
    CHECK;                         \
    if (taken) pc = code + at->d;  \
    NEXT;                          \
  }

template <bool kTiered>
Val run(Vm& vm, Closure* self, Val* r, const Instr* pc) {
  static const void* const table[] = {
#define X(id) &&do_##id,
      CALC_OPCODES(X)
#undef X
  };
  const Instr* const code = vm.code.instrs.data();
  const Val* const k = vm.code.constants.data();
  [[maybe_unused]] std::atomic<uint16_t>* const seen = vm.code.seen.get();
  const Instr* at;
  NEXT;

  CASE(kMove) r[at->a] = r[at->b];
  NEXT;
  CASE(kConst) r[at->a] = k[at->d];
  NEXT;
  CASE(kGetGlobal) r[at->a] = vm.globals[static_cast<size_t>(at->d)];
  SEE(r[at->a]);
  NEXT;
  CASE(kSetGlobal) vm.globals[static_cast<size_t>(at->d)] = r[at->a];
  NEXT;
  CASE(kGetCapture) r[at->a] = self->cells[at->d]->value;
  SEE(r[at->a]);
  NEXT;
  CASE(kSetCapture) self->cells[at->d]->value = r[at->a];
  NEXT;
  CASE(kNewCell) r[at->a] = new_cell(vm, at, r[at->a]);
  CHECK;
  NEXT;
  CASE(kGetCell) r[at->a] = reinterpret_cast<Cell*>(r[at->b])->value;
  SEE(r[at->a]);
  NEXT;
  CASE(kSetCell) reinterpret_cast<Cell*>(r[at->a])->value = r[at->b];
  NEXT;

  ARITHMETIC(kAdd, add);
  ARITHMETIC(kSub, sub);
  ARITHMETIC(kMul, mul);
  ARITHMETIC(kDiv, div);
  ARITHMETIC(kFloorDiv, floor_div);
  ARITHMETIC(kMod, mod);
  CASE(kNeg) {
    Val v = r[at->b];
    if (is_int(v) && as_int(v) != 0 && as_int(v) != INT32_MIN) {
      r[at->a] = of_int(-as_int(v));
    } else if (is_double(v)) {
      r[at->a] = of_double(-as_double(v));
    } else {
      r[at->a] = negate(vm, at, v);
      CHECK;
    }
    NEXT;
  }
  CASE(kNot) r[at->a] = vm.heap.boolean(!truthy(vm, r[at->b]));
  NEXT;
  CASE(kLess) r[at->a] = vm.heap.boolean(less<false>(vm, at, r[at->b], r[at->c]));
  CHECK;
  NEXT;
  CASE(kLessEqual) r[at->a] = vm.heap.boolean(less<true>(vm, at, r[at->b], r[at->c]));
  CHECK;
  NEXT;
  CASE(kEqual) r[at->a] = vm.heap.boolean(same(r[at->b], r[at->c]));
  NEXT;
  CASE(kNotEqual) r[at->a] = vm.heap.boolean(!same(r[at->b], r[at->c]));
  NEXT;

  CASE(kJump) pc = code + at->d;
  NEXT;
  JUMP_WHEN(kJumpIf, truthy(vm, r[at->a]))
  JUMP_WHEN(kJumpUnless, !truthy(vm, r[at->a]))
  JUMP_WHEN(kJumpLess, less<false>(vm, at, r[at->a], r[at->b]))
  JUMP_WHEN(kJumpLessEqual, less<true>(vm, at, r[at->a], r[at->b]))
  JUMP_WHEN(kJumpEqual, same(r[at->a], r[at->b]))
  JUMP_WHEN(kJumpNotLess, !less<false>(vm, at, r[at->a], r[at->b]))
  JUMP_WHEN(kJumpNotLessEqual, !less<true>(vm, at, r[at->a], r[at->b]))
  JUMP_WHEN(kJumpNotEqual, !same(r[at->a], r[at->b]))
  JUMP_WHEN(kJumpLessK, less<false>(vm, at, r[at->a], k[at->wide()]))
  JUMP_WHEN(kJumpLessEqualK, less<true>(vm, at, r[at->a], k[at->wide()]))
  JUMP_WHEN(kJumpGreaterK, less<false>(vm, at, k[at->wide()], r[at->a]))
  JUMP_WHEN(kJumpGreaterEqualK, less<true>(vm, at, k[at->wide()], r[at->a]))
  JUMP_WHEN(kJumpEqualK, same(r[at->a], k[at->wide()]))
  JUMP_WHEN(kJumpNotLessK, !less<false>(vm, at, r[at->a], k[at->wide()]))
  JUMP_WHEN(kJumpNotLessEqualK, !less<true>(vm, at, r[at->a], k[at->wide()]))
  JUMP_WHEN(kJumpNotGreaterK, !less<false>(vm, at, k[at->wide()], r[at->a]))
  JUMP_WHEN(kJumpNotGreaterEqualK, !less<true>(vm, at, k[at->wide()], r[at->a]))
  JUMP_WHEN(kJumpNotEqualK, !same(r[at->a], k[at->wide()]))

  CASE(kForLoop) {
    int32_t next = as_int(r[at->a]) + 1;
    if (next >= as_int(r[at->a + 1])) NEXT;
    r[at->a] = of_int(next);
  }
  CASE(kLoop) pc = code + at->d;
  if constexpr (kTiered) {
    Val result;
    if (--*self->proto->loop_countdown <= 0 && vm.loop_event(vm, self, r, pc, result))
      return result;
  }
  NEXT;
  CASE(kForPrepare) {
    bool ints = both_int(r[at->a], r[at->a + 1]);
    bool runs = ints ? as_int(r[at->a]) < as_int(r[at->a + 1]) : for_prepare(vm, at, r + at->a);
    CHECK;
    if (!runs) pc = code + at->d;
    NEXT;
  }

  CASE(kGetField) {
    FieldCache::Entry* e;
    Val object = r[at->b];
    if (field(vm.cache(at), object, e)) [[likely]] {
      r[at->a] = static_cast<Record*>(as_object(object))->slot(e->slot);
    } else {
      r[at->a] = get_field(vm, at, object);
      CHECK;
    }
    SEE(r[at->a]);
    NEXT;
  }
  CASE(kSetField) {
    FieldCache::Entry* e;
    Val object = r[at->a];
    if (field(vm.cache(at), object, e) && e->next == nullptr) [[likely]] {
      static_cast<Record*>(as_object(object))->slot(e->slot) = r[at->b];
    } else {
      set_field(vm, at, object, r[at->b]);
      CHECK;
    }
    NEXT;
  }
  CASE(kGetIndex) {
    Val* place;
    if (element(vm, r[at->b], r[at->c], place)) [[likely]] {
      r[at->a] = *place;
    } else {
      r[at->a] = get_index(vm, at, r[at->b], r[at->c]);
      CHECK;
    }
    SEE(r[at->a]);
    NEXT;
  }
  CASE(kSetIndex) {
    Val* place;
    if constexpr (kTiered) note(seen[at - code], kReached);
    if (element(vm, r[at->a], r[at->b], place)) [[likely]] {
      *place = r[at->c];
    } else {
      set_index(vm, at, r[at->a], r[at->b], r[at->c]);
      CHECK;
    }
    NEXT;
  }
  CASE(kNewArray) r[at->a] = new_array(vm, at, r + at->b);
  CHECK;
  NEXT;
  CASE(kNewRecord) r[at->a] = new_record(vm, at, r + at->b);
  CHECK;
  NEXT;
  CASE(kClosure) r[at->a] = new_closure(vm, at, self, r);
  CHECK;
  NEXT;
  CASE(kCall) {
    Closure* f = callee(vm, at, r[at->a]);
    CHECK;
    if constexpr (kTiered) {
      note_callee(*vm.code.calls[static_cast<size_t>(at->d)], f->proto);
      r[at->a] = call_entry(f->proto->entry, f, r + at->a + 1, at->c);
    } else {
      r[at->a] = interpret(vm, Interpreter::kPlain, f, r + at->a + 1);
    }
    CHECK;
    SEE(r[at->a]);
    NEXT;
  }
  CASE(kBuiltin) r[at->a] = call_builtin(vm, at, r + at->a);
  CHECK;
  SEE(r[at->a]);
  NEXT;
  CASE(kReturn) return r[at->a];
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
  const Instr* pc = vm.code.instrs.data() + p.begin;
  for (uint32_t i = 0; i < p.params; ++i) r[i] = args[i];
  Val result;
  if (which == Interpreter::kPlain) {
    result = run<false>(vm, f, r, pc);
  } else {
    for (uint32_t i = 0; i < p.params; ++i) {
      note(vm.code.params_seen[p.index * kMaxParams + i], kReached | kind_of(r[i]));
    }
    result = run<true>(vm, f, r, pc);
  }
  vm.top = r;
  return result;
}

Val resume(Vm& vm, Closure* f, Val* r, const Instr* pc) {
  Val result = run<true>(vm, f, r, pc);
  vm.top = r;
  return result;
}

Val call_entry(const void* entry, Closure* f, const Val* a, unsigned count) {
  auto* e = const_cast<void*>(entry);
  switch (count) {
    case 0: return reinterpret_cast<Val (*)(Closure*)>(e)(f);
    case 1: return reinterpret_cast<Val (*)(Closure*, Val)>(e)(f, a[0]);
    case 2: return reinterpret_cast<Val (*)(Closure*, Val, Val)>(e)(f, a[0], a[1]);
    case 3: return reinterpret_cast<Val (*)(Closure*, Val, Val, Val)>(e)(f, a[0], a[1], a[2]);
    case 4:
      return reinterpret_cast<Val (*)(Closure*, Val, Val, Val, Val)>(e)(f, a[0], a[1], a[2], a[3]);
    case 5:
      return reinterpret_cast<Val (*)(Closure*, Val, Val, Val, Val, Val)>(e)(f, a[0], a[1], a[2],
                                                                             a[3], a[4]);
    default:
      return reinterpret_cast<Val (*)(Closure*, Val, Val, Val, Val, Val, Val)>(e)(
          f, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
}

}  // namespace calc
