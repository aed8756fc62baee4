#include "jit/x64/address.h"

#include <algorithm>
#include <optional>

#include "jit/ir/semantics.h"

namespace uptier::jit::x64 {
namespace {

constexpr unsigned kDeepest = 4;  // the most definitions that most() looks through

const Inst* def(const Function& f, Value v) {
  InstId i = f.value(v).inst;
  return i.valid() ? &f.inst(i) : nullptr;
}

std::optional<uint64_t> constant_of(const Function& f, Value v) {
  const Inst* i = def(f, v);
  return i && i->op == Opcode::kConst ? std::optional(clip(i->type, i->imm)) : std::nullopt;
}

uint64_t most(const Function& f, Value v, unsigned depth) {
  const Inst* i = def(f, v);
  if (!i || depth == kDeepest || f.type_of(v) != Type::kI32) return UINT32_MAX;
  auto operand = [&](uint32_t n) { return most(f, f.args(*i)[n], depth + 1); };
  auto limited = [](uint64_t bound) { return bound > UINT32_MAX ? UINT32_MAX : bound; };
  Shape s = info(i->op).shape;
  if (s == Shape::kCompare || s == Shape::kTest) return 1;
  switch (i->op) {
    case Opcode::kConst: return clip(Type::kI32, i->imm);
    case Opcode::kLoad8U: return 0xFF;
    case Opcode::kLoad16U: return 0xFFFF;
    case Opcode::kAnd: return std::min(operand(0), operand(1));
    case Opcode::kAdd: return limited(operand(0) + operand(1));
    case Opcode::kSelect: return std::max(operand(1), operand(2));
    case Opcode::kShrU:
    case Opcode::kShl: {
      auto c = constant_of(f, f.args(*i)[1]);
      if (!c) return UINT32_MAX;
      return i->op == Opcode::kShl ? limited(operand(0) << (*c & 31)) : operand(0) >> (*c & 31);
    }
    default: return UINT32_MAX;
  }
}

class AddressTaker {
 public:
  AddressTaker(const Function& f, const Inst& access)
      : f_(f), fenced_((access.flags & kMemFenced) != 0) {
    auto args = f.args(access).subspan(info(access.op).shape == Shape::kStore ? 1 : 0);
    parts_.base = args[0];
    parts_.offset = static_cast<int64_t>(access.imm);
    if (args.size() > 1) parts_.index = args[1];
  }

  AddressParts run() {
    if (!parts_.index.valid()) return parts_;
    if (auto c = constant_of(f_, parts_.index); c && *c <= INT32_MAX && fits(*c)) {
      parts_.offset += static_cast<int64_t>(*c);
      parts_.index = Value::none();
      return parts_;
    }
    if (!fits(0)) return parts_;
    take_sum();
    take_shift();
    take_sum();
    return parts_;
  }

 private:
  bool fits(uint64_t more) const {
    auto sum = static_cast<uint64_t>(parts_.offset) + more;
    return sum <= INT32_MAX;
  }

  // index = x + c
  void take_sum() {
    const Inst* i = def(f_, parts_.index);
    if (!i || i->op != Opcode::kAdd) return;
    Value x = f_.args(*i)[0];
    auto c = constant_of(f_, f_.args(*i)[1]);
    if (!c || constant_of(f_, x)) return;
    if (i->type == Type::kI32 && take_difference(x, static_cast<uint32_t>(*c))) return;
    if (*c > INT32_MAX || !fits(*c << parts_.scale)) return;
    if (i->type == Type::kI32 && greatest_of(f_, x) + *c > UINT32_MAX) return;
    parts_.index = x;
    parts_.offset += static_cast<int64_t>(*c << parts_.scale);
    parts_.taken = true;
  }

  // index = x - d. If x < d, the index wraps around to the last d bytes before 2^32, while [x - d]
  // is among the last d bytes before the base. Fences cover both, so both fault. A further offset
  // could lead past either fence to other data, so there must be none.
  bool take_difference(Value x, uint32_t c) {
    uint32_t d = 0 - c;
    if (!fenced_ || d > kFenceBytes || parts_.offset != 0 || parts_.scale != 0) return false;
    parts_.index = x;
    parts_.offset = -static_cast<int64_t>(d);
    parts_.taken = true;
    return true;
  }

  // index = x << 1..3
  void take_shift() {
    const Inst* i = def(f_, parts_.index);
    if (!i || i->op != Opcode::kShl) return;
    Value x = f_.args(*i)[0];
    auto c = constant_of(f_, f_.args(*i)[1]);
    if (!c || *c < 1 || *c > 3 || constant_of(f_, x)) return;
    if (i->type == Type::kI32 && greatest_of(f_, x) << *c > UINT32_MAX) return;
    parts_.index = x;
    parts_.scale = static_cast<uint8_t>(*c);
    parts_.taken = true;
  }

  const Function& f_;
  bool fenced_;
  AddressParts parts_;
};

}  // namespace

uint64_t greatest_of(const Function& f, Value v) { return most(f, v, 0); }

AddressParts take_apart(const Function& f, const Inst& access) {
  return AddressTaker(f, access).run();
}

}  // namespace uptier::jit::x64
