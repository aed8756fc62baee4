#include "plan.h"

#include <algorithm>

namespace calc {

Type join(Type a, Type b) {
  if (a.is == Type::kNone || a == b) return b;
  if (b.is == Type::kNone) return a;
  if (a.number() && b.number()) return {Type::kDouble};
  if (a.is == b.is) return {a.is};
  return {Type::kAny};
}

std::optional<uint32_t> Plan::loop_at(uint32_t pc) const {
  for (uint32_t i = 0; i < loops.size(); ++i) {
    if (loops[i].pc == pc) return i;
  }
  return std::nullopt;
}

bool is_jump(Op op) { return op >= Op::kJump && op <= Op::kForLoop; }
bool falls_through(Op op) { return op != Op::kJump && op != Op::kLoop && op != Op::kReturn; }

Uses uses_of(const Vm& vm, const Instr& i) {
  auto range = [](int from, int count) {
    std::vector<int> all;
    for (int r = from; r < from + count; ++r) all.push_back(r);
    return all;
  };
  switch (i.op) {
    case Op::kConst:
    case Op::kGetGlobal:
    case Op::kGetCapture: return {{}, i.a};
    case Op::kMove:
    case Op::kGetCell:
    case Op::kNeg:
    case Op::kNot:
    case Op::kGetField: return {{i.b}, i.a};
    case Op::kNewCell: return {{i.a}, i.a};
    case Op::kSetCell:
    case Op::kSetField: return {{i.a, i.b}};
    case Op::kSetGlobal:
    case Op::kSetCapture:
    case Op::kJumpIf:
    case Op::kJumpUnless:
    case Op::kReturn: return {{i.a}};
    case Op::kForPrepare: return {{i.a, i.a + 1}, i.a, i.a + 1};
    case Op::kForLoop: return {{i.a, i.a + 1}, i.a};
    case Op::kSetIndex: return {{i.a, i.b, i.c}};
    case Op::kNewArray:
    case Op::kNewRecord: return {range(i.b, i.c), i.a};
    case Op::kCall: return {range(i.a, i.c + 1), i.a};
    case Op::kBuiltin: return {range(i.a, i.c), i.a};
    case Op::kJump:
    case Op::kLoop: return {};
    case Op::kClosure: {
      Uses u{{}, i.a};
      for (const Proto::Capture& c : vm.code.protos[static_cast<size_t>(i.d)]->captures) {
        if (c.local) u.reads.push_back(static_cast<int>(c.index));
      }
      return u;
    }
    default: break;
  }
  if (i.op >= Op::kAddK && i.op <= Op::kModK) return {{i.b}, i.a};
  if (i.op >= Op::kJumpLessK && i.op <= Op::kJumpNotEqualK) return {{i.a}};
  if (i.op >= Op::kJumpLess && i.op <= Op::kJumpNotEqual) return {{i.a, i.b}};
  return {{i.b, i.c}, i.a};  // arithmetic, comparison, kGetIndex
}

namespace {

// Backwards until nothing changes.
void find_live(const Vm& vm, Plan& p) {
  uint32_t begin = p.proto->begin;
  const Instr* code = vm.code.instrs.data() + begin;
  p.live.assign(p.size() + 1, {});
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t at = p.size(); at-- > 0;) {
      const Instr& i = code[at];
      Live live = falls_through(i.op) ? p.live[at + 1] : Live();
      if (is_jump(i.op)) live |= p.live[static_cast<uint32_t>(i.d) - begin];
      Uses u = uses_of(vm, i);
      // A jump that is taken writes nothing, but kForLoop.
      for (int w : {u.writes, u.writes_too}) {
        if (w >= 0) live.reset(static_cast<size_t>(w));
      }
      for (int r : u.reads) live.set(static_cast<size_t>(r));
      changed |= live != p.live[at];
      p.live[at] = live;
    }
  }
}

void find_blocks(const Vm& vm, Plan& p) {
  uint32_t begin = p.proto->begin;
  p.leaders.assign(p.size() + 1, false);
  p.loop_ends.assign(p.size() + 1, 0);
  p.types.assign(p.size() + 1, {});
  p.leaders[0] = true;
  for (uint32_t at = 0; at < p.size(); ++at) {
    const Instr& i = vm.code.instrs[begin + at];
    if (is_jump(i.op)) {
      uint32_t to = static_cast<uint32_t>(i.d) - begin;
      p.leaders[to] = p.leaders[at + 1] = true;
      if (to <= at) p.loop_ends[to] = std::max(p.loop_ends[to], at + 1);
    }
    if (i.op == Op::kReturn) p.leaders[at + 1] = true;
  }
}

void copy_seen(const Vm& vm, Plan& p) {
  p.fields.resize(p.size());
  p.targets.resize(p.size());
  for (uint32_t at = 0; at < p.size(); ++at) {
    const Instr& i = vm.code.instrs[p.proto->begin + at];
    p.seen.push_back(vm.code.seen[p.proto->begin + at].load(std::memory_order_relaxed));
    if (i.op == Op::kGetField || i.op == Op::kSetField) {
      const FieldCache& c = *vm.code.caches[static_cast<size_t>(i.d)];
      uint32_t count = c.count.load(std::memory_order_acquire);  // pairs with remember()
      p.fields[at] = {{c.entries, c.entries + count}, c.overflowed.load(std::memory_order_relaxed)};
    }
    if (i.op == Op::kCall) {
      const CallCache& c = *vm.code.calls[static_cast<size_t>(i.d)];
      p.targets[at] = {c.first.load(std::memory_order_relaxed),
                       c.many.load(std::memory_order_relaxed)};
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
