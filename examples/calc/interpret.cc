#include "interpret.h"

#include <algorithm>

#include "tiers.h"
#include "uptier/words.h"

namespace calc {
namespace {

// ---- Fast paths: each returns whether it applies. All are wanted in the loop itself; those of
// arithmetic are called what the table of opcodes calls them.
#define FAST [[gnu::always_inline]] inline

template <typename F>
FAST bool on_doubles(Val a, Val b, Val& to, F f) {
  if (is_double(a) && is_double(b)) return to = of_double(f(as_double(a), as_double(b))), true;
  if (!is_number(a) || !is_number(b)) return false;
  return to = of_double(f(number(a), number(b))), true;
}
// A sum, difference or product: of ints unless that overflows, or is minus zero.
#define CHECKED(name, overflows, sign)                                                             \
  FAST bool name(Val a, Val b, Val& to) {                                                          \
    int32_t x = as_int(a), y = as_int(b), result;                                                  \
    if (!both_int(a, b)) return on_doubles(a, b, to, [](double m, double n) { return m sign n; }); \
    return !(overflows) && (to = of_int(result), true);                                            \
  }
CHECKED(Add, __builtin_add_overflow(x, y, &result), +)
CHECKED(Sub, __builtin_sub_overflow(x, y, &result), -)
CHECKED(Mul, __builtin_mul_overflow(x, y, &result) || (result == 0 && (x | y) < 0), *)
FAST bool Div(Val a, Val b, Val& to) {
  return on_doubles(a, b, to, [](double x, double y) { return x / y; });
}
// For such ints, what the machine does rounds down and takes the right sign.
FAST bool whole(Val a, Val b) { return both_int(a, b) && as_int(a) >= 0 && as_int(b) > 0; }
FAST bool FloorDiv(Val a, Val b, Val& to) {
  return whole(a, b) && (to = of_int(as_int(a) / as_int(b)), true);
}
FAST bool Mod(Val a, Val b, Val& to) {
  return whole(a, b) && (to = of_int(as_int(a) % as_int(b)), true);
}
FAST bool negate(Val a, Val& to) {
  if (is_double(a)) return to = of_double(-as_double(a)), true;
  if (!is_int(a) || as_int(a) == 0 || as_int(a) == INT32_MIN) return false;
  return to = of_int(-as_int(a)), true;
}
template <typename F>
FAST bool compare(Val a, Val b, bool& to, F f) {
  if (both_int(a, b)) return to = f(as_int(a), as_int(b)), true;
  return is_double(a) && is_double(b) && (to = f(as_double(a), as_double(b)), true);
}
// Where a record has the field, and a store leaves the shape as it is.
FAST bool field(FieldCache& c, Val v, Val*& place) {
  if (!is_object(v)) return false;
  auto* record = static_cast<Row*>(object(v));
  for (FieldCache::Entry& e : c.entries) {
    if (e.shape != record->shape) continue;
    place = record->data + e.slot;
    return e.next == nullptr;
  }
  return false;
}
FAST bool element(Val v, Val index, Val*& place) {
  if (!is_object(v) || !is_int(index)) return false;
  auto* a = static_cast<Row*>(object(v));
  auto i = static_cast<uint32_t>(as_int(index));
  return a->shape == &array_shape && i < a->length && (place = a->data + i, true);
}

void capture(Closure* f, const Val* r) {
  for (size_t i = 0; i < f->proto->captures.size(); ++i) {
    auto [local, index] = f->proto->captures[i];
    if (local) f->cells[i] = reinterpret_cast<Cell*>(r[index]);
  }
}

// ---- The loop

#define NEXT                                   \
  do {                                         \
    at = pc++;                                 \
    goto* table[static_cast<uint8_t>(at->op)]; \
  } while (false)
#define DO(name, ...) \
  do_##name : {       \
    __VA_ARGS__;      \
    NEXT;             \
  }
#define A r[at->a]
#define B r[at->b]
#define C r[at->c]
#define D static_cast<size_t>(at->d)
#define JUMP pc = code + at->d
#define CHECK                 \
  if (vm.failed) [[unlikely]] \
  return 0
// Runs the slow path, which may fail, when the fast path does not apply.
#define UNLESS(fast, ...)     \
  if (!(fast)) [[unlikely]] { \
    __VA_ARGS__;              \
    CHECK;                    \
  }
#define REACH \
  if constexpr (kTiered) note(seen[at - code], kReached)
#define SEE(v) \
  if constexpr (kTiered) note(seen[at - code], kReached | kind_of(v))
#define ARITHMETIC(name, ...)                                         \
  DO(name, UNLESS(name(B, C, A), A = calc_arithmetic(&vm, at, B, C))) \
  DO(name##K, UNLESS(name(B, k[D], A), A = calc_arithmetic(&vm, at, B, k[D])))
#define JUMP_IF(name, x, y, sign, wanted)                                                    \
  DO(name, bool holds; UNLESS(compare(x, y, holds, [](auto m, auto n) { return m sign n; }), \
                              holds = calc_compare(&vm, at, x, y) != 0) if (holds == wanted) JUMP)
#define COMPARISON(name, sign, ...)               \
  JUMP_IF(Jump##name, A, B, sign, true)           \
  JUMP_IF(JumpNot##name, A, B, sign, false)       \
  JUMP_IF(Jump##name##K, A, k[at->b], sign, true) \
  JUMP_IF(JumpNot##name##K, A, k[at->b], sign, false)

template <bool kTiered>
Val run(Vm& vm, Closure* self, Val* r, const Instr* pc) {
#define CALC_X(name, reads, writes) &&do_##name,
  static const void* const table[] = {CALC_OPCODES};
#undef CALC_X
  const Instr* const code = vm.code.instrs.data();
  const Val* const k = vm.code.constants.data();
  [[maybe_unused]] Seen* const seen = vm.code.seen.data();
  [[maybe_unused]] void* const thread = kTiered ? uptier::Runtime::thread_base() : nullptr;
  const Instr* at;
  Val* place;
  NEXT;

  CALC_COMPARISONS(COMPARISON)
  DO(JumpIf, if (truthy(A)) JUMP)
  DO(JumpUnless, if (!truthy(A)) JUMP)
  DO(Jump, JUMP)
do_ForPrepare : {
  Val &from = A, &to = r[at->a + 1];
  if (!both_int(from, to)) {
    uint64_t bounds = calc_for_bounds(&vm, at, from, to);
    CHECK;
    from = of_int(static_cast<int32_t>(bounds));
    to = of_int(static_cast<int32_t>(bounds >> 32));
  }
  if (as_int(from) >= as_int(to)) JUMP;
  NEXT;
}
do_ForLoop : {
  int32_t next = as_int(A) + 1;
  if (next >= as_int(r[at->a + 1])) NEXT;
  A = of_int(next);
}
do_Loop : {
  JUMP;
  if constexpr (kTiered) {
    Val result;
    int32_t& left = self->proto->loop_countdown.on(thread);
    if (--left <= 0 && vm.tiers->loop_event(self, r, pc, result)) return result;
  }
  NEXT;
}

  CALC_ARITHMETIC(ARITHMETIC)
  DO(Negate, UNLESS(negate(B, A), A = calc_negate(&vm, at, B)))

  DO(Move, A = B)
  DO(Const, A = k[D])
  DO(GetGlobal, A = vm.globals[D]; SEE(A))
  DO(SetGlobal, vm.globals[D] = A)
  DO(NewCell, A = calc_new_cell(&vm, at, A); CHECK)
  DO(GetCell, A = reinterpret_cast<Cell*>(B)->value; SEE(A))
  DO(SetCell, reinterpret_cast<Cell*>(A)->value = B)
  DO(GetCapture, A = self->cells[D]->value; SEE(A))
  DO(SetCapture, self->cells[D]->value = A)

  DO(GetField, UNLESS(field(vm.field(at), B, place) && (A = *place, true),
                      A = calc_get_field(&vm, at, B)) SEE(A))
  DO(SetField,
     UNLESS(field(vm.field(at), A, place) && (*place = B, true), calc_set_field(&vm, at, A, B)))
  DO(GetIndex,
     UNLESS(element(B, C, place) && (A = *place, true), A = calc_get_index(&vm, at, B, C)) SEE(A))
  DO(SetIndex, REACH;
     UNLESS(element(A, B, place) && (*place = C, true), calc_set_index(&vm, at, A, B, C)))
  DO(NewRow, Val v = calc_new_row(&vm, at); CHECK;
     std::copy_n(&B, at->c, static_cast<Row*>(object(v))->data); A = v)
  DO(NewClosure, Val v = calc_new_closure(&vm, at, reinterpret_cast<Val>(self)); CHECK;
     capture(as_closure(v), r); A = v)
do_Call : {
  Val f = calc_callee(&vm, at, A);
  CHECK;
  auto* callee = reinterpret_cast<Closure*>(f);
  if constexpr (kTiered) {
    vm.call(at).remember(callee);
    A = f;  // the words: the pointer, the arguments
    A = uptier::call_words(callee->proto->entry, &A, at->c + 1u);
  } else {
    A = interpret(vm, Interpreter::kPlain, callee, &A + 1);
  }
  CHECK;
  SEE(A);
  NEXT;
}
  DO(Builtin, A = kBuiltins[at->b].run(&vm, at, A, r[at->a + 1], r[at->a + 2]); CHECK; SEE(A))
do_Return:
  return A;
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

namespace {

FAST Val call(Vm& vm, Interpreter which, Closure* f, const Val* args) {
  Proto& p = *f->proto;
  Val* r = open_window(vm, f);
  if (r == nullptr) return 0;
  for (uint32_t i = 0; i < p.params; ++i) r[i] = args[i];
  const Instr* pc = vm.code.instrs.data() + p.begin;
  if (which == Interpreter::kTiered) {
    for (uint32_t i = 0; i < p.params; ++i) note(p.params_seen[i], kReached | kind_of(r[i]));
    return resume(vm, f, r, pc);
  }
  Val result = run<false>(vm, f, r, pc);
  vm.top = r;
  return result;
}

[[gnu::noinline]] Val told_call(Vm& vm, Interpreter which, Closure* f, const Val* args) {
  const size_t open_calls = vm.trace.open_calls();
  vm.trace.enter(*f->proto);
  Val result = call(vm, which, f, args);
  vm.trace.leave_until(open_calls);
  return result;
}

}  // namespace

Val interpret(Vm& vm, Interpreter which, Closure* f, const Val* args) {
  if (vm.trace.tells_calls()) [[unlikely]]
    return told_call(vm, which, f, args);
  return call(vm, which, f, args);
}

Val resume(Vm& vm, Closure* f, Val* r, const Instr* pc) {
  Val result = run<true>(vm, f, r, pc);
  vm.top = r;
  return result;
}

}  // namespace calc
