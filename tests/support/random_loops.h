// random_loops.h: loops and accesses in random programs with the shapes that passes look for; see
// random_ir.h.
//
//   fill and copy loops, by addresses and by indices: some ranges overlap, some leave the page half way,
//   some indices wrap around 2^32 after a few rounds
//   accesses near one index that may be below zero, some of them on a conditional path
//   products and sums of a variable that grows by a constant
//   counted loops, up or down, to a limit that the variable may miss, with bounds and overflow checks in
//   each round and exits in the middle
#pragma once

#include "tests/support/random_expression.h"

namespace uptier::test {

class RandomLoops : protected RandomExpression {
 protected:
  using RandomExpression::RandomExpression;

  // ---- Runs of elements -------------------------------------------------------------------------

  struct Run {
    Type type;    // of the index and its base
    Value base;   // invalid: the index is the address
    Value start;  // first value of the index
    uint8_t flags;
  };

  // A run that starts `at` bytes after the start of the scratch page, by an address or an index.
  // With `far`, the index wraps around 16 to 271 bytes later, and the access faults there.
  Run run_at(Value at, bool far) {
    uint8_t flags = o_.traps || r_.chance(50) ? kMemTraps : kMemNone;
    Value page = b_.convert(Opcode::kBitcast, Type::kI64, base_);
    Value wide = b_.convert(Opcode::kExtendU, Type::kI64, at);
    if (far) {
      int32_t left = 16 + static_cast<int32_t>(r_.below(256));
      int64_t back = int64_t{left} - (int64_t{1} << 32);
      Value base = b_.binary(Opcode::kAdd, b_.binary(Opcode::kAdd, page, wide), b_.i64(back));
      return {Type::kI32, base, b_.i32(-left), kMemTraps};
    }
    if (r_.chance(40)) return {Type::kI64, {}, b_.binary(Opcode::kAdd, page, wide), flags};
    if (r_.chance(30)) return {Type::kI64, base_, wide, flags};
    if (flags == kMemTraps && r_.chance(50)) flags |= kMemFenced;
    return {Type::kI32, r_.chance(50) ? base_ : page, at, flags};
  }

  // A loop that fills or copies up to 127 elements. Ranges may overlap; now and then they extend
  // past the page or past the last index.
  void run_of_stores() {
    constexpr uint64_t kSteps = 6000;
    if (cost_ + times_ * kSteps > limit_) return assign();
    cost_ += times_ * kSteps;
    int32_t width = 1 << r_.below(4),
            each = r_.chance(60) ? 1 : 1 + static_cast<int32_t>(r_.below(4));
    int32_t step = width * each;
    Value rounds = b_.binary(Opcode::kAnd, value(Type::kI32, 1), b_.i32(step > 8 ? 31 : 127));
    if (r_.chance(40)) rounds = b_.i32(static_cast<int32_t>(r_.below(step > 8 ? 32 : 128)));
    rounds = b_.binary(Opcode::kOr, rounds, b_.i32(1));
    bool beyond = o_.traps && !o_.odd && r_.chance(4), copies = r_.chance(50);
    Value to = b_.binary(Opcode::kAnd, value(Type::kI32, 1), b_.i32(1023));
    to = b_.binary(Opcode::kAdd, to, b_.i32(beyond ? 2500 : 200));
    Value from = b_.binary(Opcode::kAnd, value(Type::kI32, 1), b_.i32(r_.chance(50) ? 31 : 127));
    from = b_.binary(pick_op({Opcode::kAdd, Opcode::kSub}), to, from);
    Run out = run_at(to, o_.traps && r_.chance(3));
    Run in = run_at(from, o_.traps && copies && r_.chance(3));
    Type element = width == 8 ? Type::kI64 : width < 4 || r_.chance(60) ? Type::kI32 : Type::kI64;
    Value fill = value(element, 1);
    store_loop(out, in, rounds, width, each, copies ? Value::none() : fill, element);
  }

  void store_loop(const Run& out, const Run& in, Value rounds, int32_t width, int32_t each,
                  Value fill, Type element) {
    Variable to = b_.declare(out.type), from = b_.declare(in.type), left = b_.declare(Type::kI32);
    b_.def(to, out.start);
    b_.def(from, in.start);
    b_.def(left, rounds);
    Value way = b_.binary(Opcode::kMul, rounds, b_.i32(width * each));
    if (out.type == Type::kI64) way = b_.convert(Opcode::kExtendU, Type::kI64, way);
    Value end = b_.binary(Opcode::kAdd, out.start, way);
    Block header = b_.create_block(), exit = b_.create_block();
    b_.jump(header);
    b_.switch_to(header);
    mark_loop();
    auto beyond = static_cast<uint32_t>(wide(30) ? r_.below(200) : 0);
    auto address = [&](const Run& r, Variable x, int32_t offset) {
      Address at{.base = r.base, .index = b_.use(x), .flags = r.flags};
      if (!r.base.valid()) at.base = b_.use(x), at.index = {};
      at.offset = static_cast<uint32_t>(offset) + beyond;
      return at;
    };
    using enum Opcode;
    bool narrow = width == 4 && element == Type::kI64;
    Opcode load = width == 1 ? kLoad8U : width == 2 ? kLoad16S : narrow ? kLoad32U : kLoad;
    Opcode store = width == 1 ? kStore8 : width == 2 ? kStore16 : narrow ? kStore32 : kStore;
    for (int32_t n = 0; n < each; ++n) {
      Value v = fill.valid() ? fill : b_.load(load, element, address(in, from, n * width));
      b_.store(store, v, address(out, to, n * width));
    }
    advance(to, width * each);
    advance(from, width * each);
    b_.def(left, b_.binary(kSub, b_.use(left), b_.i32(1)));
    size_t test = wide(40) ? 6 + r_.below(5) : r_.below(6);
    Value x = b_.use(to);
    if (test >= 6) {
      turn_back(test, x, end, b_.use(left), header, exit);
    } else if (test < 2) {
      b_.branch(test == 0 ? b_.use(left) : b_.binary(kGtS, b_.use(left), b_.i32(0)), header, exit);
    } else if (test == 2) {
      b_.branch(b_.binary(kEq, x, end), exit, header);
    } else {
      b_.branch(b_.binary(test == 3 ? kNe : test == 4 ? kLtU : kLtS, x, end), header, exit);
    }
    b_.seal(header);
    b_.seal(exit);
    b_.switch_to(exit);
    // The loop's counter stays in use. Its addresses do not: they differ from run to run.
    const auto& xs = variables_[slot(Type::kI32)];
    if (!xs.empty()) b_.def(r_.pick(xs), b_.use(left));
  }

  // Loop tests that passes must invert first.
  void turn_back(size_t test, Value x, Value end, Value left, Block header, Block exit) {
    using enum Opcode;
    switch (test) {
      case 6: return b_.branch(b_.unary(kEqz, left), exit, header);
      case 7: return b_.branch(b_.binary(kLeS, left, b_.i32(0)), exit, header);
      case 8: return b_.branch(b_.binary(pick_op({kGeU, kGeS, kEq}), x, end), exit, header);
      case 9: return b_.branch(b_.binary(pick_op({kGtU, kGtS, kNe}), end, x), header, exit);
      default: return b_.branch(b_.binary(pick_op({kLeU, kLeS}), end, x), exit, header);
    }
  }

  void advance(Variable x, int32_t by) {
    Value v = b_.use(x);
    b_.def(x, b_.binary(Opcode::kAdd, v, b_.constant(b_.type_of(v), static_cast<uint64_t>(by))));
  }

  // Accesses near one index, which may be below zero. Some are on a conditional path, so the range
  // that an access implies for the index holds on some paths only.
  void neighbours() {
    Value v = b_.binary(Opcode::kAnd, value(Type::kI32, 2), b_.i32(1023));
    if (o_.traps && r_.chance(10)) {
      v = b_.select(condition(1), b_.i32(-1 - static_cast<int32_t>(r_.below(12))), v);
    }
    for (size_t n = r_.below(4) + 2; n > 0; --n) {
      if (!r_.chance(25)) {
        touch(v);
        continue;
      }
      Block yes = b_.create_block(), join = b_.create_block();
      b_.branch(condition(1), yes, join);
      b_.seal(yes);
      b_.switch_to(yes);
      touch(v);
      b_.jump(join);
      b_.seal(join);
      b_.switch_to(join);
    }
  }

  void touch(Value v) {
    static const std::vector<int32_t> near = {4, 8, 8, 16, 100, 1000};
    int32_t more = r_.chance(40) ? 0 : r_.pick(near);
    if (o_.traps && r_.chance(2)) more = r_.chance(80) ? -8 : 65536;
    Address at{.base = base_, .index = v, .flags = kMemTraps | kMemFenced};
    if (more != 0) at.index = b_.binary(Opcode::kAdd, v, b_.i32(more));
    if (r_.chance(30)) at.offset = static_cast<uint32_t>(r_.below(1000));
    Value was = b_.load(Opcode::kLoad, Type::kI32, at);
    if (r_.chance(50)) b_.store(Opcode::kStore, b_.binary(Opcode::kAdd, was, b_.i32(1)), at);
  }

  // A short loop that sums up products of a variable that grows by a constant; if the variable
  // starts at an edge, it wraps around.
  void products() {
    constexpr uint64_t kSteps = 600;
    if (cost_ + times_ * kSteps > limit_) return assign();
    cost_ += times_ * kSteps;
    using enum Opcode;
    Type t = r_.chance(60) ? Type::kI32 : Type::kI64;
    Variable x = b_.declare(t), sum = b_.declare(t), left = b_.declare(Type::kI32);
    b_.def(x, value(t, 1));
    b_.def(sum, value(t, 1));
    b_.def(left, b_.i32(1 + static_cast<int32_t>(r_.below(12))));
    Value same = value(t, 1), step = constant(t);
    Block header = b_.create_block(), exit = b_.create_block();
    b_.jump(header);
    b_.switch_to(header);
    mark_loop();
    for (size_t sums = r_.below(3) + 1; sums > 0; --sums) {
      Value v = b_.use(x);
      for (size_t n = r_.below(4) + 1; n > 0; --n) {
        Opcode op = pick_op({kMul, kShl, kAdd, kSub, kAdd});
        bool varies = op == kAdd || op == kSub;
        Value other = varies && r_.chance(40) ? (r_.chance(30) ? b_.use(x) : same) : constant(t);
        v = op == kSub && r_.chance(30) ? b_.binary(op, other, v) : b_.binary(op, v, other);
      }
      b_.def(sum, b_.binary(pick_op({kAdd, kXor}), b_.use(sum), v));
      if (r_.chance(20) && !variables_[slot(t)].empty()) b_.def(r_.pick(variables_[slot(t)]), v);
    }
    b_.def(x, b_.binary(pick_op({kAdd, kSub}), b_.use(x), step));
    Value next = b_.binary(kSub, b_.use(left), b_.i32(1));
    b_.def(left, next);
    b_.branch(next, header, exit);
    b_.seal(header);
    b_.seal(exit);
    b_.switch_to(exit);
    keep(b_.use(sum));
  }

  // At most 127 rounds, since the variable may never meet its limit.
  void counted() {
    constexpr uint64_t kSteps = 6000;
    if (cost_ + times_ * kSteps > limit_) return assign();
    cost_ += times_ * kSteps;
    using enum Opcode;
    Type t = r_.chance(70) ? Type::kI32 : Type::kI64;
    auto bits = [&](int64_t n) { return b_.constant(t, jit::clip(t, static_cast<uint64_t>(n))); };
    auto small = [&](int64_t mask) { return b_.binary(kAnd, value(t, 1), bits(mask)); };
    auto any = [&] {
      return r_.chance(70) ? b_.binary(kSub, small(255), bits(r_.chance(50) ? 0 : 40))
                           : value(t, 1);
    };
    static const std::vector<int64_t> steps = {1, 1, 1, 2, 3, 4, 8, -1, -1, -2, -3, 7, 1000, 70000};
    Value first = any(), limit = any(), step = r_.chance(70) ? bits(r_.pick(steps)) : small(15);
    Value length = r_.chance(50) ? limit : any();
    Variable x = b_.declare(t), sum = b_.declare(t), left = b_.declare(Type::kI32);
    b_.def(x, first);
    b_.def(sum, value(t, 1));
    b_.def(left, b_.i32(r_.chance(80) ? 127 : 1 + static_cast<int32_t>(r_.below(40))));
    Block header = b_.create_block(), on = b_.create_block(), exit = b_.create_block();
    b_.jump(header);
    b_.switch_to(header);
    mark_loop();
    // Makes the header too long to be copied to the bottom, where its test would become the loop's
    // test.
    for (size_t n = r_.chance(70) ? 13 : 0; n > 0; --n) {
      b_.def(sum, b_.binary(pick_op({kXor, kSub}), b_.use(x), b_.use(sum)));
    }
    Value next = b_.binary(kSub, b_.use(left), b_.i32(1));
    b_.def(left, next);
    b_.branch(next, on, exit);
    b_.seal(on);
    b_.switch_to(on);
    Value i = b_.use(x);
    Value plus =
        r_.chance(60) ? i : b_.binary(kAdd, i, bits(1 + static_cast<int64_t>(r_.below(9))));
    if (r_.chance(60)) leave_unless(b_.binary(pick_op({kLtU, kLtU, kLtS}), plus, length), exit);
    if (r_.chance(30)) leave_unless(b_.unary(kEqz, b_.binary(kAddOverflows, i, step)), exit);
    Value wide = t == Type::kI64 ? i : b_.convert(pick_op({kExtendU, kExtendS}), Type::kI64, i);
    Value some = b_.convert(kWrap, Type::kI32, b_.binary(kMul, wide, b_.i64(3)));
    if (t == Type::kI64) some = b_.convert(kExtendU, t, some);
    b_.def(sum, b_.binary(pick_op({kAdd, kXor}), b_.use(sum), some));
    if (o_.traps && r_.chance(20)) {
      Address at{.base = base_, .index = i, .flags = kMemTraps};
      b_.store(kStore8, b_.use(sum), at);
    }
    Value then = b_.binary(kAdd, i, step);
    b_.def(x, then);
    Value tested = r_.chance(80) ? then : i;
    Opcode test = pick_op({kLtS, kLtS, kLtU, kLeS, kLeU, kNe, kNe, kGtS, kGtU, kGeS, kGeU, kEq});
    bool turned = r_.chance(20);
    Value c = turned ? b_.binary(test, limit, tested) : b_.binary(test, tested, limit);
    r_.chance(85) ? b_.branch(c, header, exit) : b_.branch(c, exit, header);
    b_.seal(header);
    b_.seal(exit);
    b_.switch_to(exit);
    keep(b_.use(sum));
    keep(b_.use(x));
  }

  // Leaves unless the condition holds: by a trap, a guard or a branch to `exit`.
  void leave_unless(Value holds, Block exit) {
    if ((o_.traps || o_.guards) && r_.chance(25)) return check(holds);
    Block on = b_.create_block();
    b_.branch(holds, on, exit);
    b_.seal(on);
    b_.switch_to(on);
  }

  // Leaves by a trap or a guard unless the condition holds; code after it may rely on the
  // condition.
  virtual void check(Value holds) = 0;

  void mark_loop() {
    std::vector<Variable> slots;
    while (r_.chance(50)) {
      const auto& xs = variables_[slot(number_type())];
      if (!xs.empty()) slots.push_back(r_.pick(xs));
    }
    if (r_.chance(95)) b_.loop_header(++location_, slots);
  }

  void assign() {
    Type t = r_.chance(5) ? Type::kRef : number_type();
    if (variables_[slot(t)].empty()) return;
    Value v = value(t, 3);
    b_.def(r_.pick(variables_[slot(t)]), v);
  }

  static constexpr uint64_t kCostLimit = 200'000;

  uint64_t limit_ = kCostLimit;
  uint64_t times_ = 1;  // upper bound of the executions of the current position in one call
  uint64_t cost_ = 0;
  uint32_t location_ = 0;
};

}  // namespace uptier::test
