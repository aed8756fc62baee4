// random_shapes.h: control flow, calls and guards that compilers of languages emit and that nested
// statements do not produce (RandomOptions::wide); see random_ir.h.
//
//   switches whose cases jump to the join, to the header or exit of an outer loop, or fall through; large
//   switches
//   loops with exits and `continue` from deep inside
//   interpreter loops: a switch at the top to which every case returns
//   calls of one of several known addresses; recursion; calls that copy and fill
//   guards that share a frame state; paths that leave; read-modify-write of memory
//   sums after an overflow check; booleans that are boxed, and branched on
//
// Memory holds no addresses, so a call target is a constant, or one of some constants.
#pragma once

#include "jit/frontend/interpret.h"
#include "tests/support/random_loops.h"

namespace uptier::test {

class RandomShapes : protected RandomLoops {
 public:
  struct Made {
    Signature signature;
    std::string name;
    uint64_t cost = 0;  // upper bound of the steps of a call
  };

 protected:
  RandomShapes(Random& r, const RandomOptions& o, const std::vector<Made>& earlier,
               const Signature& s, const std::string& name)
      : RandomLoops(r, o, s, name), earlier_(earlier), signature_(s), name_(name) {}

  virtual void statements(int depth, size_t most) = 0;

  // ---- Loops ------------------------------------------------------------------------------------

  // Returns how many rounds a loop at the current position may run.
  uint64_t most_rounds() {
    uint64_t rounds = 1 + r_.below(r_.chance(30) ? 40 : 12);
    return times_ * rounds > 400 ? 1 + rounds % 3 : rounds;
  }

  // Uses up one round; goes on in a new block, or in `exit` when no rounds are left.
  void spend(Variable fuel, Block exit) {
    Value left = b_.binary(Opcode::kSub, b_.use(fuel), b_.i32(1));
    b_.def(fuel, left);
    Block on = b_.create_block();
    b_.branch(left, on, exit);
    b_.seal(on);
    b_.switch_to(on);
  }

  // A loop whose header uses up a round, so that any statement in it may continue the loop.
  void whirl(int depth) {
    uint64_t rounds = most_rounds(), outside = times_;
    Variable fuel = b_.declare(Type::kI32);
    b_.def(fuel, b_.i32(static_cast<int32_t>(rounds)));
    Block header = b_.create_block(), exit = b_.create_block();
    b_.jump(header);
    b_.switch_to(header);
    mark_loop();
    spend(fuel, exit);
    around_.push_back({header, exit});
    size_t scope = values_.size();
    times_ *= rounds;
    statements(depth - 1, 5);
    if (r_.chance(30)) {
      leap();
      statements(depth - 1, 3);
    }
    r_.chance(40) ? b_.branch(condition(2), header, exit) : b_.jump(header);
    times_ = outside;
    values_.resize(scope);
    around_.pop_back();
    b_.seal(header);
    b_.seal(exit);
    b_.switch_to(exit);
  }

  Block somewhere_around() {
    const Around& a = r_.pick(around_);
    return r_.chance(50) ? a.header : a.exit;
  }

  // Breaks out of an enclosing loop, continues it, or goes on.
  void leap() {
    if (around_.empty()) return assign();
    Block next = b_.create_block(), to = somewhere_around();
    Value c = condition(2);
    r_.chance(50) ? b_.branch(c, to, next) : b_.branch(c, next, to);
    b_.seal(next);
    b_.switch_to(next);
  }

  // An interpreter loop. It uses up its rounds without a branch: a select makes the switch take the
  // exit.
  void machine(int depth) {
    uint64_t rounds = most_rounds(), outside = times_;
    int32_t mask = r_.chance(50) ? 7 : 15;
    Variable state = b_.declare(Type::kI32), fuel = b_.declare(Type::kI32);
    b_.def(state, value(Type::kI32, 1));
    b_.def(fuel, b_.i32(static_cast<int32_t>(rounds)));
    std::vector<Block> arms(2 + r_.below(6)), cases;
    for (Block& a : arms) a = b_.create_block();
    for (int32_t n = 0; n <= mask; ++n) cases.push_back(r_.pick(arms));
    Block header = b_.create_block(), exit = b_.create_block();
    b_.jump(header);
    b_.switch_to(header);
    mark_loop();
    Value left = b_.use(fuel);
    b_.def(fuel, b_.binary(Opcode::kSub, left, b_.i32(1)));
    Value s = b_.binary(Opcode::kAnd, b_.use(state), b_.i32(mask));
    b_.switch_on(b_.select(left, s, b_.i32(-1)), cases, exit);
    around_.push_back({header, exit});
    size_t scope = values_.size();
    times_ *= rounds;
    for (Block a : arms) {
      b_.seal(a);
      b_.switch_to(a);
      statements(depth - 1, 2);
      b_.def(state, value(Type::kI32, 2));
      r_.chance(85) ? b_.jump(header) : b_.branch(condition(1), header, exit);
      values_.resize(scope);
    }
    times_ = outside;
    around_.pop_back();
    b_.seal(header);
    b_.seal(exit);
    b_.switch_to(exit);
  }

  // ---- Switches ---------------------------------------------------------------------------------

  // A switch whose cases have destinations of all kinds.
  void fan(int depth) {
    std::vector<Block> arms(1 + r_.below(5)), cases;
    for (Block& a : arms) a = b_.create_block();
    Block join = b_.create_block();
    std::vector<Block> ways = arms;
    ways.push_back(join);
    if (!around_.empty() && r_.chance(50)) ways.push_back(somewhere_around());
    size_t count = r_.chance(10) ? 64 + r_.below(300) : r_.below(24);
    size_t longest = r_.chance(50) ? 1 : 6;
    while (cases.size() < count) cases.insert(cases.end(), 1 + r_.below(longest), r_.pick(ways));
    static const std::vector<int32_t> masks = {3, 7, 7, 31, 255, -1};
    Value index = b_.binary(Opcode::kAnd, value(Type::kI32, 2), b_.i32(r_.pick(masks)));
    if (r_.chance(20)) index = b_.binary(Opcode::kSub, index, b_.i32(r_.chance(50) ? 1 : 20));
    b_.switch_on(index, cases, r_.pick(ways));
    size_t scope = values_.size();
    for (size_t n = 0; n < arms.size(); ++n) {
      b_.seal(arms[n]);
      b_.switch_to(arms[n]);
      if (r_.chance(80)) statements(depth - 1, 2);
      bool last = n + 1 == arms.size();
      Block to = !last && r_.chance(30)              ? arms[n + 1]
                 : !around_.empty() && r_.chance(10) ? somewhere_around()
                                                     : join;
      b_.jump(last ? join : to);
      values_.resize(scope);
    }
    b_.seal(join);
    b_.switch_to(join);
  }

  // Both edges of a branch lead to the same block, which also has another predecessor.
  void twins() {
    Block other = b_.create_block(), both = b_.create_block(), join = b_.create_block();
    b_.branch(condition(2), both, other);
    size_t scope = values_.size();
    b_.seal(both);
    b_.switch_to(both);
    assign();
    b_.branch(condition(1), join, join);
    values_.resize(scope);
    b_.seal(other);
    b_.switch_to(other);
    assign();
    b_.jump(join);
    values_.resize(scope);
    b_.seal(join);
    b_.switch_to(join);
  }

  // ---- Calls ------------------------------------------------------------------------------------

  std::vector<Value> arguments(const Signature& s) {
    std::vector<Value> args{base_};
    for (size_t i = 1; i < s.params.size(); ++i) args.push_back(value(s.params[i], 2));
    return args;
  }

  void take(Value result) {
    if (!result.valid()) return;
    const auto& xs = variables_[slot(b_.type_of(result))];
    if (!xs.empty() && r_.chance(80)) b_.def(r_.pick(xs), result);
    keep(result);
  }

  Value address_of(size_t method) {
    return b_.constant(Type::kRef,
                       jit::Interpreter::address_of(MethodId(static_cast<uint32_t>(method))));
  }

  // Calls, by address, one of the earlier functions with some signature.
  void call_any() {
    if (earlier_.empty() || !o_.addresses) return assign();
    const Signature& s = r_.pick(earlier_).signature;
    std::vector<size_t> may;
    uint64_t most = 0;
    for (size_t n = 0; n < earlier_.size(); ++n) {
      if (earlier_[n].signature != s) continue;
      may.push_back(n);
      most = std::max(most, earlier_[n].cost);
    }
    if (cost_ + times_ * most > limit_) return assign();
    cost_ += times_ * most;
    std::vector<Value> args = arguments(s);
    if (r_.chance(20)) {  // the same page as another value
      Value page = b_.convert(Opcode::kBitcast, Type::kI64, base_);
      args[0] = b_.convert(Opcode::kBitcast, Type::kRef, page);
    }
    Value target = address_of(r_.pick(may));
    for (size_t n = r_.below(3); n > 0; --n) {
      target = b_.select(condition(1), target, address_of(r_.pick(may)));
    }
    if (r_.chance(20)) b_.probe(ProbeKind::kCallTarget, target);
    take(b_.call_indirect(target, s, args));
  }

  // Recursion: two call sites outside of loops, at most three levels deep, so the body runs at most
  // 1 + 2 + 4 + 8 = 15 times.
  static constexpr uint64_t kMostAgain = 15;

  void call_again() {
    bool may = deep_.valid() && times_ == 1 && again_ < 2;
    if (!may) return assign();
    ++again_;
    Block yes = b_.create_block(), join = b_.create_block();
    Value more = b_.binary(Opcode::kAnd, b_.use(deep_), b_.i32(3));
    b_.branch(more, yes, join);
    b_.seal(yes);
    b_.switch_to(yes);
    size_t scope = values_.size();
    std::vector<Value> args = arguments(signature_);
    args[1] = b_.binary(Opcode::kSub, more, b_.i32(1));
    take(b_.call(MethodId(static_cast<uint32_t>(earlier_.size())), signature_, args, name_));
    values_.resize(scope);
    b_.jump(join);
    b_.seal(join);
    b_.switch_to(join);
  }

  // Copies or fills near the start of the scratch page, or past its end.
  void move_bytes() {
    using enum Opcode;
    auto masked = [&](int32_t mask) { return b_.binary(kAnd, value(Type::kI32, 1), b_.i32(mask)); };
    bool copies = r_.chance(50), beyond = o_.traps && r_.chance(5);
    Value n = r_.chance(60) ? b_.i32(static_cast<int32_t>(r_.below(r_.chance(80) ? 33 : 70)))
                            : masked(63);
    if (r_.chance(40)) b_.probe(ProbeKind::kValue, n);
    Value to = masked(1023);
    if (beyond) to = b_.binary(kOr, to, b_.i32(8192));
    bool reads_beyond = o_.traps && r_.chance(5);
    Value what = copies ? masked(reads_beyond ? 4095 : 1023) : value(Type::kI32, 1);
    if (r_.chance(30)) what = b_.binary(kAdd, to, b_.i32(static_cast<int32_t>(r_.below(40))));
    const HostFunction& host = moving_hosts()[copies ? 0 : 1];
    Value args[] = {base_, base_, to, what, n};
    Value failed = b_.call_host(host, args, copies ? kCallCopies : kCallFills);
    b_.trap_if(failed, TrapCode::kOutOfBoundsMemory);
  }

  // ---- Guards -----------------------------------------------------------------------------------

  std::vector<Value> state() {
    std::vector<Value> slots;
    size_t most = r_.chance(1) ? 300 : 6;
    for (size_t n = r_.below(most); n > 0; --n) slots.push_back(leaf(number_type()));
    return slots;
  }

  Value seldom(int32_t is) { return b_.binary(Opcode::kEq, value(Type::kI32, 2), b_.i32(is)); }

  void guards() {
    std::vector<Value> conditions;
    for (size_t n = 1 + r_.below(3); n > 0; --n) {
      conditions.push_back(b_.unary(Opcode::kEqz, seldom(65535)));
    }
    b_.frame_state(++location_, state());
    for (Value c : conditions) {
      b_.guard(c, static_cast<GuardReason>(r_.below(7)));
      if (r_.chance(50)) keep(b_.binary(Opcode::kAdd, leaf(Type::kI32), b_.i32(1)));
    }
  }

  // A sum, difference or product after an overflow check by a guard or a trap. Its operands may be
  // in the frame state.
  void sum() {
    using enum Opcode;
    Type t = r_.chance(70) ? Type::kI32 : Type::kI64;
    Value x = leaf(t), y = r_.chance(40) ? constant(t) : leaf(t);
    struct Row {
      Opcode op, overflows;
    };
    constexpr Row kRows[] = {{kAdd, kAddOverflows}, {kSub, kSubOverflows}, {kMul, kMulOverflows}};
    const Row& row = kRows[r_.below(3)];
    // Mostly small operands, so that most checks pass.
    Value small = b_.binary(kShrS, x, t == Type::kI32 ? b_.i32(17) : b_.i64(40));
    if (r_.chance(70)) x = small;
    if (r_.chance(40)) y = b_.binary(kAnd, y, t == Type::kI32 ? b_.i32(1023) : b_.i64(1023));
    std::vector<Value> slots = state();
    if (r_.chance(50)) slots.push_back(x);
    if (r_.chance(30)) slots.push_back(y);
    if (o_.guards) b_.frame_state(++location_, slots);
    Value overflows = b_.binary(row.overflows, x, y);
    if (o_.guards) {
      b_.guard(b_.unary(kEqz, overflows), GuardReason::kOverflow);
    } else {
      b_.trap_if(overflows, TrapCode::kIntegerOverflow);
    }
    if (r_.chance(30)) keep(b_.binary(kXor, x, y));
    bool turned = row.op != kSub && r_.chance(20);
    keep(turned ? b_.binary(row.op, y, x) : b_.binary(row.op, x, y));
  }

  // Boxes a boolean as another number, checks and unboxes it, and branches on it.
  void boxed() {
    using enum Opcode;
    Value bit = b_.binary(kAnd, leaf(Type::kI64), b_.i64(1)), tag = b_.i64(INT64_MIN / 64 + 1);
    Value box = b_.binary(kAdd, b_.select(seldom(INT32_MAX), leaf(Type::kI64), bit), tag);
    b_.frame_state(++location_, state());
    Value out = b_.binary(kSub, box, tag);
    b_.guard(r_.chance(50) ? b_.binary(kLeU, out, b_.i64(1)) : b_.binary(kLtU, out, b_.i64(2)),
             GuardReason::kType);
    if (r_.chance(50)) keep(b_.binary(kXor, out, leaf(Type::kI64)));
    Variable which = b_.declare(Type::kI64);
    b_.def(which, out);
    Block yes = b_.create_block(), no = b_.create_block(), on = b_.create_block();
    b_.branch(b_.convert(kWrap, Type::kI32, out), yes, r_.chance(30) ? on : no);
    b_.seal(yes);
    b_.switch_to(yes);
    if (r_.chance(60)) b_.def(which, leaf(Type::kI64));
    b_.jump(on);
    b_.seal(no);
    b_.switch_to(no);
    b_.def(which, leaf(Type::kI64));
    b_.jump(on);
    b_.seal(on);
    b_.switch_to(on);
    keep(b_.use(which));
  }

  void leave() {
    Block out = b_.create_block(), on = b_.create_block();
    b_.branch(seldom(INT32_MIN), out, on);
    b_.seal(out);
    b_.switch_to(out);
    b_.frame_state(++location_, state());
    b_.leave();
    b_.seal(on);
    b_.switch_to(on);
  }

  // ---- Short functions --------------------------------------------------------------------------

  // Several paths to one return, so that some paths need no frame.
  void begin_short() {
    out_ = b_.create_block();
    if (signature_.result != Type::kNone) answer_ = b_.declare(signature_.result);
  }

  void answer() {
    if (answer_.valid()) b_.def(answer_, leaf(signature_.result));
  }

  void hurry() {
    if (!out_.valid()) return assign();
    Block next = b_.create_block();
    Value c = condition(2);
    answer();
    r_.chance(50) ? b_.branch(c, out_, next) : b_.branch(c, next, out_);
    b_.seal(next);
    b_.switch_to(next);
  }

  void end_short() {
    answer();
    b_.jump(out_);
    b_.seal(out_);
    b_.switch_to(out_);
    answer_.valid() ? b_.ret(b_.use(answer_)) : b_.ret();
  }

  // ---- Values -----------------------------------------------------------------------------------

  // Reads, modifies and writes one memory location.
  void bump() {
    using enum Opcode;
    Type t = r_.chance(50) ? Type::kI32 : Type::kI64;
    Address at = address(2, true);
    Value other = r_.chance(40) ? constant(t) : value(t, 1);
    Value was = b_.load(kLoad, t, at);
    Opcode op = pick_op({kAdd, kSub, kAnd, kOr, kXor, kMul});
    Value now = r_.chance(70) ? b_.binary(op, was, other) : b_.binary(op, other, was);
    b_.store(kStore, now, at);
    if (r_.chance(20)) keep(r_.chance(50) ? was : now);
  }

  // A probed value that later operations depend on.
  void watched(int depth) {
    using enum Opcode;
    Type t = r_.chance(60) ? Type::kI32 : Type::kI64;
    Value v = r_.chance(50) ? leaf(t) : value(t, 1);
    if (r_.chance(50)) v = b_.binary(kAnd, v, b_.constant(t, 15));
    b_.probe(r_.chance(80) ? ProbeKind::kValue : ProbeKind::kRange, v);
    Block yes = b_.create_block(), join = b_.create_block();
    b_.branch(condition(1), yes, join);
    size_t scope = values_.size();
    b_.seal(yes);
    b_.switch_to(yes);
    if (depth > 0 && r_.chance(50)) {
      values_.push_back(v);
      values_.push_back(v);
      whirl(depth);
    }
    for (size_t n = 1 + r_.below(3); n > 0; --n) steered_by(v, t);
    b_.jump(join);
    values_.resize(scope);
    b_.seal(join);
    b_.switch_to(join);
  }

  void steered_by(Value v, Type t) {
    using enum Opcode;
    const auto& xs = variables_[slot(t)];
    if (xs.empty()) return;
    Variable x = r_.pick(xs);
    Value y = b_.use(x), divisor = b_.binary(kOr, v, b_.constant(t, 1));
    switch (r_.below(4)) {
      case 0: return b_.def(x, b_.binary(pick_op({kDivU, kRemU}), y, divisor));
      case 1: return b_.def(x, b_.binary(pick_op({kShl, kShrU, kShrS}), y, v));
      case 2: return b_.def(x, b_.binary(kMul, y, v));
      default: break;
    }
    Value c = b_.binary(pick_op({kEq, kLtS, kLtU, kGeS}), v, r_.chance(70) ? constant(t) : y);
    Block yes = b_.create_block(), join = b_.create_block();
    b_.branch(c, yes, join);
    b_.seal(yes);
    b_.switch_to(yes);
    b_.def(x, b_.binary(kAdd, y, b_.constant(t, 7)));
    b_.jump(join);
    b_.seal(join);
    b_.switch_to(join);
  }

  // Several selections on one condition; one of them may select an address.
  void selects() {
    Value c = condition(2);
    for (size_t n = 2 + r_.below(3); n > 0; --n) {
      Type t = number_type();
      Value v = b_.select(c, leaf(t), leaf(t));
      keep(v);
      if (!variables_[slot(t)].empty() && r_.chance(60)) b_.def(r_.pick(variables_[slot(t)]), v);
    }
    if (r_.chance(40)) return;
    Value v = leaf(Type::kI32);
    b_.store(Opcode::kStore, v, {.base = b_.select(c, base_, pointer(1))});
  }

  // Makes one of these shapes instead of a plain statement. Returns whether it did.
  bool shape(int depth) {
    if (out_.valid() && r_.chance(30)) return hurry(), true;
    if (!wide(35)) return false;
    size_t kind = r_.below(100);
    if (kind < 12) return depth > 0 ? (whirl(depth), true) : false;
    if (kind < 18) return depth > 0 ? (machine(depth), true) : false;
    if (kind < 34) return depth > 0 ? (fan(depth), true) : false;
    if (kind < 44) return leap(), true;
    if (kind < 49) return twins(), true;
    if (kind < 57) return call_any(), true;
    if (kind < 63) return call_again(), true;
    if (kind < 67) return o_.hosts ? (move_bytes(), true) : false;
    if (kind < 72) return o_.guards || o_.traps ? (sum(), true) : false;
    if (kind < 75) return o_.guards ? (boxed(), true) : false;
    if (kind < 79) return o_.guards ? (guards(), true) : false;
    if (kind < 81) return o_.guards ? (leave(), true) : false;
    if (kind < 86) return watched(depth), true;
    if (kind < 93) return bump(), true;
    return selects(), true;
  }

  // An enclosing loop, which statements inside may break out of or continue.
  struct Around {
    Block header, exit;
  };

  const std::vector<Made>& earlier_;
  Signature signature_;
  std::string name_;
  std::vector<Around> around_;
  Block out_;           // the return of a short function
  Variable answer_;     // the result of a short function; invalid: none
  Variable deep_;       // how many more levels it may recurse; invalid: none
  unsigned again_ = 0;  // call sites that recurse
};

}  // namespace uptier::test
