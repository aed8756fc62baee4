#include "plan.h"

#include <algorithm>

namespace calc {

Type join(Type a, Type b) {
  if (a.is == Type::kNone || a == b) return b;
  if (b.is == Type::kNone) return a;
  if (a.number() && b.number()) return {Type::kDouble};
  return {a.is == b.is ? a.is : Type::kAny};
}

Type type_of_kinds(unsigned kinds) {
  switch (kinds) {
    case kInt: return {Type::kInt};
    case kDouble:
    case kInt | kDouble: return {Type::kDouble};
    case kNil: return {Type::kNil};
    case kBool: return {Type::kBool};
    case kString: return {Type::kString};
    case kArray: return {Type::kArray};
    case kRecord: return {Type::kRecord};
    case kFunction: return {Type::kFunction};
    default: return {};
  }
}

bool to_form(Type t, Val v, uint64_t& bits) {
  bits = t.object() ? v - kObjectTag : v;
  if (t.is == Type::kAny) return true;
  if (t.is == Type::kDouble) {
    if (is_number(v)) bits = of_double(number(v));
    return is_number(v);
  }
  if (t.is == Type::kInt) bits = static_cast<uint32_t>(v);
  if (t.is == Type::kBool) bits = v - kFalseVal;
  if (type_of_kinds(kind_of(v)).is != t.is) return false;
  if (t.is == Type::kFunction) return t.what == nullptr || as<Closure>(v)->proto == t.what;
  return t.what == nullptr || shape_of(v) == t.what;
}

Val from_form(Type t, uint64_t bits) {
  if (t.object()) return kObjectTag | bits;
  if (t.is == Type::kInt) return of_int(static_cast<int32_t>(bits));
  return t.is == Type::kBool ? of_bool((bits & 1) != 0) : bits;
}

namespace {

struct OpInfo {
  const char *reads, *writes;
};
#define CALC_X(id, reads, writes) {reads, writes},
constexpr OpInfo kOps[] = {CALC_OPCODES};
#undef CALC_X

// Registers as the table of opcodes names them.
Registers registers_of(const Vm& vm, const Instr& i, const char* letters) {
  Registers all;
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

bool falls_through(Op op) { return op != Op::kJump && op != Op::kLoop && op != Op::kReturn; }

// Backwards until nothing changes. A jump that is taken writes nothing, but kForLoop.
void find_live(const Vm& vm, Plan& p) {
  const Instr* code = vm.code.instrs.data() + p.proto->begin;
  p.live.assign(p.size() + 1, {});
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t at = p.size(); at-- > 0;) {
      const Instr& i = code[at];
      const OpInfo& info = kOps[static_cast<size_t>(i.op)];
      Registers live = falls_through(i.op) ? p.live[at + 1] : Registers();
      if (is_jump(i.op)) live |= p.live[static_cast<uint32_t>(i.d) - p.proto->begin];
      live &= ~registers_of(vm, i, info.writes);
      live |= registers_of(vm, i, info.reads);
      changed |= live != p.live[at];
      p.live[at] = live;
    }
  }
}

void find_blocks(const Vm& vm, Plan& p) {
  const Instr* code = vm.code.instrs.data() + p.proto->begin;
  p.leaders.assign(p.size() + 1, false);
  p.types.assign(p.size() + 1, {});
  p.leaders[0] = true;
  for (uint32_t at = 0; at < p.size(); ++at) {
    const Instr& i = code[at];
    if (i.op == Op::kReturn) p.leaders[at + 1] = true;
    if (!is_jump(i.op)) continue;
    uint32_t to = static_cast<uint32_t>(i.d) - p.proto->begin;
    p.leaders[to] = p.leaders[at + 1] = true;
    if (to <= at) p.loops[to].end = std::max(p.loops[to].end, at + 1);
  }
  for (auto& [header, loop] : p.loops) {
    for (uint32_t at = header; at < loop.end; ++at) {
      const Instr& i = code[at];
      loop.writes |= registers_of(vm, i, kOps[static_cast<size_t>(i.op)].writes);
      bool resizes = i.op == Op::kBuiltin && (i.b == BuiltinId::kPush || i.b == BuiltinId::kPop);
      if (resizes || i.op == Op::kCall) loop.quiet = false;
    }
  }
}

void copy_seen(const Vm& vm, Plan& p) {
  p.fields.resize(p.size());
  p.targets.resize(p.size());
  p.globals.resize(p.size());
  for (uint32_t at = 0; at < p.size(); ++at) {
    const Instr& i = vm.code.instrs[p.proto->begin + at];
    auto index = static_cast<size_t>(i.d);
    p.seen.push_back(vm.code.seen[p.proto->begin + at].load(std::memory_order_relaxed));
    if (i.op == Op::kGetField || i.op == Op::kSetField) {
      const FieldCache& c = *vm.code.caches[index];
      uint32_t count = c.count.load(std::memory_order_acquire);  // pairs with remember()
      p.fields[at] = {{c.entries, c.entries + count}, c.overflowed.load(std::memory_order_relaxed)};
    }
    if (i.op == Op::kCall) {
      const CallCache& c = *vm.code.calls[index];
      p.targets[at] = {c.first.load(std::memory_order_relaxed),
                       c.many.load(std::memory_order_relaxed)};
    }
    if (i.op == Op::kGetGlobal && (p.seen[at] & (255 | kStranger)) == kFunction) {
      p.globals[at] = std::atomic_ref(const_cast<Val&>(vm.globals[index])).load();
    }
  }
  for (uint32_t i = 0; i < p.proto->params; ++i) {
    const auto& seen = vm.code.params_seen[p.proto->index * kMaxParams + i];
    p.params_seen.push_back(seen.load(std::memory_order_relaxed));
  }
}

}  // namespace

std::unique_ptr<Plan> freeze(const Vm& vm, Proto& proto, uint32_t number, bool speculate) {
  auto p = std::make_unique<Plan>();
  p->proto = &proto;
  p->number = number;
  p->speculate = speculate;
  copy_seen(vm, *p);
  find_blocks(vm, *p);
  find_live(vm, *p);
  return p;
}

}  // namespace calc
