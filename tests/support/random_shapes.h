// random_shapes.h: control flow, calls and guards that compilers of languages make and that nested
// statements do not come to by themselves (RandomOptions::wide); see random_ir.h.
//
//   switches whose cases go straight to where others join, to loops around them and out of these, or
//   fall through; large ones
//   loops that are left and begun anew from inside of what is nested in them
//   loops of an interpreter: a switch at the top that each case comes back to
//   calls of what is known by its address, one of several; calls of itself; calls that copy and fill
//   guards that share a frame state; paths that leave; places that are changed where they are
//   sums behind the question whether they overflow; booleans that are boxed, and branched on
//
// Memory holds no addresses, so what is called is a constant, or one of some constants.
#pragma once

#include "jit/frontend/interpret.h"
#include "tests/support/random_loops.h"

namespace uptier::test {

class RandomShapes : protected RandomLoops {
 public:
  struct Made {
    Signature signature;
    std::string name;
    uint64_t cost = 0;  // an upper bound of the steps of a call
  };

 protected:
  RandomShapes(Random& r, const RandomOptions& o, const std::vector<Made>& earlier,
               const Signature& s, const std::string& name)
      : RandomLoops(r, o, s, name), earlier_(earlier), signature_(s), name_(name) {}

  virtual void statements(int depth, size_t most) = 0;

  // ---- Loops ------------------------------------------------------------------------------------

  // How often a loop may go round where it stands.
  uint64_t most_rounds() {
    uint64_t rounds = 1 + r_.below(r_.chance(30) ? 40 : 12);
    return times_ * rounds > 400 ? 1 + rounds % 3 : rounds;
  }

  // Takes one round; goes on to a new block, or to `exit` when all were taken.
  void spend(Variable fuel, Block exit) {
    Value left = b_.binary(Opcode::kSub, b_.use(fuel), b_.i32(1));
    b_.def(fuel, left);
    Block on = b_.create_block();
    b_.branch(left, on, exit);
    b_.seal(on);
    b_.switch_to(on);
  }

  // A loop whose header takes a round, so that all that stands in it may begin it anew.
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

  // Leaves a loop around, or begins it anew, or goes on.
  void leap() {
    if (around_.empty()) return assign();
    Block next = b_.create_block(), to = somewhere_around();
    Value c = condition(2);
    r_.chance(50) ? b_.branch(c, to, next) : b_.branch(c, next, to);
    b_.seal(next);
    b_.switch_to(next);
  }

  // The loop of an interpreter, whose rounds are taken without a branch.
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

  // A switch with ways of all kinds.
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

  // Both ways of a branch go to the same block, and there is another way to it.
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

  // Calls one of those that have a signature.
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
    if (r_.chance(20)) {  // the same page under another name
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

  // Calls itself, at two places outside of loops and three levels deep at most: 15 times in all.
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

  // Copies or fills at the scratch page's start, or beyond its end.
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

  // What is asked whether it overflows, by a guard or a trap, and computed behind it; its operands may be
  // in the state.
  void sum() {
    using enum Opcode;
    Type t = r_.chance(70) ? Type::kI32 : Type::kI64;
    Value x = leaf(t), y = r_.chance(40) ? constant(t) : leaf(t);
    struct Row {
      Opcode op, overflows;
    };
    constexpr Row kRows[] = {{kAdd, kAddOverflows}, {kSub, kSubOverflows}, {kMul, kMulOverflows}};
    const Row& row = kRows[r_.below(3)];
    // Small as a rule, so that most do not leave.
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

  // A boolean that is kept as another number, asked for and taken out, and a branch on it.
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

  // Several ways to one return of what is at hand, so that there are paths without a frame.
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

  // What a place holds is changed there.
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

  // A value that is observed, and steers what follows.
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

  // Some selections on one condition, of which one may choose a place.
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

  // Goes on to one of these instead of an old statement. Returns whether it did.
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

  // A loop that what stands in it may leave or begin anew.
  struct Around {
    Block header, exit;
  };

  const std::vector<Made>& earlier_;
  Signature signature_;
  std::string name_;
  std::vector<Around> around_;
  Block out_;           // of a short function: its return
  Variable answer_;     // likewise: what it returns; none: nothing
  Variable deep_;       // how often it may call itself; none: never
  unsigned again_ = 0;  // places where it does
};

}  // namespace uptier::test
