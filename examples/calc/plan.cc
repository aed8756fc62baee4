#include "plan.h"

#include "emit.h"
#include "uptier/words.h"

namespace calc {

bool to_form(Type t, Val v, uint64_t& bits) {
  bits = t.object() ? v - kObjectTag : v;
  if (t.form() == uptier::Type::kF64 && is_number(v)) bits = of_double(number(v));
  if (t.is(kInt)) bits = static_cast<uint32_t>(v);
  if (t.is(kBool)) bits = v - kFalseVal;
  if (!t.may_be(kind_of(v)) && !(t.number() && is_int(v) && !t.is(kInt))) return false;
  if (t.what == nullptr) return true;
  return t.what == (t.is(kFunction) ? as_closure(v)->proto : static_cast<void*>(object(v)->shape));
}

Val from_form(Type t, uint64_t bits) {
  if (t.object()) return kObjectTag | bits;
  if (t.is(kInt)) return of_int(static_cast<int32_t>(bits));
  return t.is(kBool) ? of_bool((bits & 1) != 0) : bits;
}

namespace {

struct OpInfo {
  const char *reads, *writes;
};
#define CALC_X(name, reads, writes) {reads, writes},
constexpr OpInfo kOps[] = {CALC_OPCODES};
#undef CALC_X

// Registers as the table of opcodes names them.
uptier::RegisterSet registers_of(const Vm& vm, const Instr& i, const char* letters) {
  uptier::RegisterSet all;
  auto range = [&](size_t from, size_t count) {
    for (size_t r = from; r < from + count; ++r) all.set(r);
  };
  for (const char* c = letters; *c != 0; ++c) {
    switch (*c) {
      case 'a': all.set(i.a); break;
      case 'x': all.set(i.a + 1u); break;
      case 'b': all.set(i.b); break;
      case 'c': all.set(i.c); break;
      case '*': range(i.b, i.c); break;
      case '&': range(i.a, i.c); break;
      case '+': range(i.a, i.c + 1u); break;
      default:
        for (const auto& capture : vm.code.protos[static_cast<size_t>(i.d)]->captures) {
          if (capture.local) all.set(capture.index);
        }
    }
  }
  return all;
}

uptier::RegisterStep step_of(const Vm& vm, const Proto& p, const Instr& i) {
  const OpInfo& info = kOps[static_cast<size_t>(i.op)];
  uptier::RegisterStep step = {registers_of(vm, i, info.reads), registers_of(vm, i, info.writes)};
  step.goes_on = i.op != Op::kJump && i.op != Op::kLoop && i.op != Op::kReturn;
  if (is_jump(i.op)) step.jumps_to = static_cast<uint32_t>(i.d) - p.begin;
  return step;
}

Plan::Place seen_at(const Vm& vm, uint32_t at) {
  const Instr& i = vm.code.instrs[at];
  auto index = static_cast<size_t>(i.d);
  Plan::Place place = {.seen = vm.code.seen[at].load(std::memory_order_relaxed)};
  if (i.op == Op::kGetField || i.op == Op::kSetField) {
    const FieldCache& c = *vm.code.fields[index];
    uint32_t count = c.count.load(std::memory_order_acquire);  // pairs with remember()
    if (count != 0) place.seen |= kReached;
    if (count <= FieldCache::kSize) place.shapes = {c.entries, c.entries + count};
  }
  if (i.op == Op::kCall) {
    const CallCache& c = *vm.code.calls[index];
    place.callee = c.first.load(std::memory_order_acquire);  // pairs with remember()
    place.many_closures = c.many_closures.load(std::memory_order_relaxed);
    place.many_protos = c.many_protos.load(std::memory_order_relaxed);
  }
  return place;
}

}  // namespace

std::unique_ptr<Plan> make_plan(Vm& vm, Proto& proto, bool guess) {
  auto p = std::make_unique<Plan>();
  p->proto = &proto;
  p->guess = guess;
  std::vector<uptier::RegisterStep> steps;
  for (uint32_t at = proto.begin; at < proto.end; ++at) {
    steps.push_back(step_of(vm, proto, vm.code.instrs[at]));
    p->places.push_back(seen_at(vm, at));
  }
  for (Seen& s : proto.params_seen) p->params_seen.push_back(s.load(std::memory_order_relaxed));
  p->code = uptier::RegisterCode(steps);
  infer_types(p->code, p->types, uptier::words_signature(proto.params + 1),
              [&](uptier::FunctionBuilder& b) { return Emitter(vm, *p, b, true).walk(); });
  return p;
}

}  // namespace calc
