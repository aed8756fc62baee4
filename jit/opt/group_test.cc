#include "jit/opt/group_test.h"

#include <algorithm>

#include "jit/analysis/condition.h"
#include "jit/ir/semantics.h"

namespace uptier::jit {
namespace {

constexpr uint64_t kMostStep = 1 << 16;  // also of a constant that a guard adds to the variable

bool is_signed_order(Opcode op) {
  return op == Opcode::kLtS || op == Opcode::kLeS || op == Opcode::kGtS || op == Opcode::kGeS;
}

}  // namespace

GroupTest::GroupTest(const Function& f, const LoopNest& n, uint32_t loop,
                     std::span<const Block> blocks, const CountedLoop& counted, uint64_t rounds)
    : f_(f),
      loops_(n),
      loop_(loop),
      counted_(counted),
      rounds_(rounds),
      type_(f.type_of(counted.variable)) {
  exists_ = find_direction();
  if (exists_ && up_) find_bounds(blocks);
}

bool GroupTest::find_direction() {
  using enum Opcode;
  if (counted_.constant_step) {
    uint64_t step = *counted_.constant_step, back = clip(type_, 0 - step);
    up_ = step <= kMostStep;
    if (!up_ && back > kMostStep) return false;
    distance_ = (rounds_ - 1) * (up_ ? step : back);
  } else if (counted_.test != kLtS && counted_.test != kLeS) {
    return false;
  }
  inclusive_ = counted_.test == kLeS || counted_.test == kLeU || counted_.test == kGeS ||
               counted_.test == kGeU;
  signed_ = is_signed_order(counted_.test);
  op_ = up_ ? (signed_ ? kLtS : kLtU) : (signed_ ? kGtS : kGtU);
  bool rises = counted_.test == kLtS || counted_.test == kLtU || counted_.test == kLeS ||
               counted_.test == kLeU;
  return counted_.test == kNe || rises == up_;
}

// ---- The bounds in guards ----------------------------------------------------------------------

void GroupTest::find_bounds(std::span<const Block> blocks) {
  for (Block b : blocks) {
    for (InstId id : f_.block(b).insts) {
      const Inst& i = f_.inst(id);
      from_zero_ |= signed_ && extends_variable(i);
      bool guard = i.op == Opcode::kGuard;
      if (!guard && i.op != Opcode::kTrapIf) continue;
      if (guard && i.imm != 0 && f_.deopts[i.imm - 1].asks()) continue;
      auto bound = bound_of(i);
      if (!bound) continue;
      if (std::ranges::find(bounds_, *bound) == bounds_.end()) bounds_.push_back(*bound);
      answered_.push_back(id);
      from_zero_ |= signed_ && !bound->is_signed;
    }
  }
}

// Returns whether the instruction depends on the variable's value as an unsigned number: an address
// or an extension, but not a sum.
bool GroupTest::extends_variable(const Inst& i) const {
  Shape s = info(i.op).shape;
  bool access = s == Shape::kLoad || s == Shape::kStore;
  bool extends = i.op == Opcode::kExtendU || i.op == Opcode::kExtendS;
  return type_ == Type::kI32 && (access || extends) && f_.args(i).back() == counted_.variable;
}

std::optional<GroupTest::Bound> GroupTest::bound_of(const Inst& i) const {
  Condition passes = condition_of(f_, f_.args(i)[0], i.op == Opcode::kGuard);
  switch (passes.op) {
    case Opcode::kSelect: return passes.holds ? std::nullopt : bound_of_overflow(passes.a);
    case Opcode::kLtS:
    case Opcode::kLtU:
      if (!passes.holds) return std::nullopt;
      return bound_of_length(passes.a, passes.b, passes.op == Opcode::kLtS);
    case Opcode::kLeS:
    case Opcode::kLeU:
      if (passes.holds) return std::nullopt;
      return bound_of_length(passes.b, passes.a, passes.op == Opcode::kLeS);
    default: return std::nullopt;
  }
}

std::optional<GroupTest::Bound> GroupTest::bound_of_length(Value x, Value length,
                                                           bool is_signed) const {
  if (f_.type_of(x) != type_ || !is_invariant(f_, loops_, loop_, length)) return std::nullopt;
  auto plus = distance_from_variable(x);
  if (!plus || (!signed_ && (is_signed || *plus != 0))) return std::nullopt;
  return Bound{length, *plus, is_signed};
}

// Returns the small constant that has to be added to the variable to get `v`, if there is one.
std::optional<uint64_t> GroupTest::distance_from_variable(Value v) const {
  if (v == counted_.variable) return 0;
  InstId id = f_.value(v).inst;
  if (!id.valid() || f_.inst(id).op != Opcode::kAdd) return std::nullopt;
  auto args = f_.args(f_.inst(id));
  auto c = constant_of(f_, args[1]);
  return args[0] == counted_.variable && c && *c <= kMostStep ? c : std::nullopt;
}

std::optional<GroupTest::Bound> GroupTest::bound_of_overflow(Value overflows) const {
  InstId id = f_.value(overflows).inst;
  if (!signed_ || !id.valid() || f_.inst(id).op != Opcode::kAddOverflows) return std::nullopt;
  auto args = f_.args(f_.inst(id));
  if (args[0] != counted_.variable && args[1] != counted_.variable) return std::nullopt;
  Value by = args[args[0] == counted_.variable ? 1 : 0];
  if (by == counted_.step) return Bound{Value::none(), counted_.constant_step.value_or(0)};
  auto c = constant_of(f_, by);
  bool small = c && *c != 0 && *c <= kMostStep;
  return small ? std::optional(Bound{Value::none(), *c}) : std::nullopt;
}

// ---- The limit -----------------------------------------------------------------------------------

uint64_t GroupTest::greatest() const { return clip(type_, ~uint64_t{0}) >> (signed_ ? 1 : 0); }

uint64_t GroupTest::least() const { return signed_ ? greatest() + 1 : 0; }

void GroupTest::also(LoopPreheader& e, Value condition) {
  enters_ = enters_.valid() ? e.emit(Opcode::kAnd, Type::kI32, {enters_, condition}) : condition;
}

Value GroupTest::value(LoopPreheader& e, Value v) const {
  if (!v.valid()) return e.constant(type_, 0);
  return loops_.contains(loop_, f_.value(v).block) ? e.constant(type_, *constant_of(f_, v)) : v;
}

Value GroupTest::lower(LoopPreheader& e, Value a, Value b) const {
  Value below = e.emit(op_, type_, {a, b});
  return e.emit(Opcode::kSelect, type_, {below, a, b});
}

// Returns the least value to which adding `step` overflows.
Value GroupTest::overflow_bound(LoopPreheader& e, Value step) const {
  return e.emit(Opcode::kSub, type_, {e.constant(type_, greatest() + 1), step});
}

// Returns the bound that the variable must be below.
Value GroupTest::emit_bound(LoopPreheader& e, const Bound& b) {
  bool by_constant = b.plus != 0 || counted_.constant_step;
  if (!b.length.valid()) {
    return overflow_bound(e, by_constant ? e.constant(type_, b.plus) : value(e, counted_.step));
  }
  Value length = value(e, b.length);
  if (b.plus == 0) return length;
  also(e, e.emit(Opcode::kGeS, type_, {length, e.constant(type_, 0)}));
  return e.emit(Opcode::kSub, type_, {length, e.constant(type_, b.plus)});
}

void GroupTest::emit_limit(LoopPreheader& e) {
  using enum Opcode;
  Value n = value(e, counted_.limit), step = value(e, counted_.step);
  // If this wraps around, the test against `end` below fails.
  if (inclusive_) n = e.emit(kAdd, type_, {n, e.constant(type_, up_ ? 1 : ~uint64_t{0})});
  for (const Bound& b : bounds_) {
    bool same = b.length == counted_.limit && b.plus == 0 && !inclusive_;
    if (!same) n = lower(e, emit_bound(e, b), n);
  }
  Bound next{Value::none(), counted_.constant_step.value_or(0)};
  bool may_wrap = counted_.constant_step != 1u && std::ranges::find(bounds_, next) == bounds_.end();
  if (from_zero_ && may_wrap) n = lower(e, emit_bound(e, next), n);
  uint64_t most = counted_.constant_step ? distance_ : (rounds_ - 1) * kMostStep;
  Value end = e.constant(type_, up_ ? least() + most : greatest() - most);
  Opcode no_less = up_ ? (signed_ ? kGeS : kGeU) : (signed_ ? kLeS : kLeU);
  also(e, e.emit(no_less, type_, {n, end}));
  if (counted_.constant_step) {
    limit_ = e.emit(kAdd, type_, {n, e.constant(type_, up_ ? 0 - distance_ : distance_)});
    return;
  }
  Value more = e.emit(kSub, type_, {step, e.constant(type_, 1)});
  also(e, e.emit(kLtU, type_, {more, e.constant(type_, kMostStep)}));
  Value distance = e.emit(kMul, type_, {step, e.constant(type_, rounds_ - 1)});
  limit_ = e.emit(kSub, type_, {n, distance});
}

Value GroupTest::emit_enters(LoopPreheader& e, Value first) {
  if (from_zero_) also(e, e.emit(Opcode::kGeS, type_, {first, e.constant(type_, 0)}));
  also(e, e.emit(op_, type_, {first, limit_}));
  return enters_;
}

}  // namespace uptier::jit
