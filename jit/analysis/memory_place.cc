#include "jit/analysis/memory_place.h"

#include <algorithm>
#include <optional>

#include "jit/ir/semantics.h"

namespace uptier::jit {
namespace {

constexpr int64_t kSmallOffset = int64_t{1} << 30;
constexpr size_t kMostWrites = 64;  // with more, anything may be written

std::optional<uint64_t> constant_of(const Function& f, Value v) {
  InstId i = f.value(v).inst;
  bool is = i.valid() && f.inst(i).op == Opcode::kConst;
  return is ? std::optional(f.inst(i).imm) : std::nullopt;
}

}  // namespace

MemoryPlace place_of(const Function& f, const Inst& access) {
  return place_if(f, access, Value::none(), Value::none());
}

MemoryPlace place_if(const Function& f, const Inst& access, Value operand, Value other) {
  auto args = f.args(access).subspan(info(access.op).shape == Shape::kStore ? 1 : 0);
  auto is = [&](Value v) { return v == operand ? other : v; };
  MemoryPlace p;
  p.base = is(args[0]);
  p.offset = access.imm;
  p.width = access_size(access.op, access.type);
  p.alias = alias_class_of(access.flags);
  auto offset = static_cast<int64_t>(access.imm);
  p.near = offset < kSmallOffset;
  p.distance = offset;
  if (args.size() < 2) return p;
  p.index = p.root = is(args[1]);
  if (auto c = constant_of(f, p.index)) {
    uint64_t index = f.type_of(p.index) == Type::kI32 ? static_cast<uint32_t>(*c) : *c;
    if (index >= uint64_t{kSmallOffset}) return p;
    p.root = Value::none();
    p.distance += static_cast<int64_t>(index);
    return p;
  }
  InstId id = f.value(p.index).inst;
  if (!id.valid() || f.inst(id).op != Opcode::kAdd) return p;
  const Inst& add = f.inst(id);
  auto c = constant_of(f, f.args(add)[1]);
  if (!c) return p;
  int64_t step =
      add.type == Type::kI32 ? int64_t{static_cast<int32_t>(*c)} : static_cast<int64_t>(*c);
  if (step <= -kSmallOffset || step >= kSmallOffset) return p;
  p.root = f.args(add)[0];
  p.distance += step;
  return p;
}

bool may_touch(const MemoryPlace& a, const MemoryPlace& b) {
  if (a.alias != 0 && b.alias != 0 && a.alias != b.alias) return false;
  if (a.base != b.base || a.root != b.root || !a.near || !b.near) return true;
  return a.distance < b.distance + b.width && b.distance < a.distance + a.width;
}

void Writes::add(const Function& f, Block b) {
  for (InstId id : f.block(b).insts) {
    const Inst& i = f.inst(id);
    if ((info(i.op).effects & kWrites) == 0) continue;
    anywhere |= info(i.op).shape != Shape::kStore || places.size() == kMostWrites;
    if (anywhere) return;
    places.push_back(place_of(f, i));
  }
}

bool Writes::may_touch(const MemoryPlace& p) const {
  return anywhere || std::any_of(places.begin(), places.end(),
                                 [&](const MemoryPlace& w) { return jit::may_touch(w, p); });
}

}  // namespace uptier::jit
