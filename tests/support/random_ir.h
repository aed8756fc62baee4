// random_ir.h: well-typed programs that terminate, from a seed, to compare executors with each
// other.
//
//   A program is a pure function of (seed, options), and so is its result.
//
//   Loops count down from at most 7 (with `odd`, they may have other tests and run 40 rounds), calls go to
//   earlier functions only, and the estimated number of steps of a call is bounded. So every run ends
//   within a few hundred thousand instructions.
//
//   Memory accesses stay in the scratch page, or (rarely, and marked kMemTraps) leave it for the guard
//   regions. Nothing writes to the page's last bytes, which invariant loads read.
//
//   No bits of a NaN are ever observable: floats are tested with x == x before they are converted to ints,
//   stored, or used for their sign.
//
// Every function takes the scratch page's address first. Values live in Variables (some of which
// are never assigned) and also directly across branches and loops, so that both ways to keep a
// value are under pressure.
#pragma once

#include <string>
#include <vector>

#include "jit/ir/module.h"
#include "tests/support/ir_corpus.h"
#include "tests/support/random_shapes.h"

namespace uptier::test {

// Makes one function.
class RandomFunction : RandomShapes {
 public:
  using RandomShapes::Made;

  RandomFunction(Random& r, const RandomOptions& o, const std::vector<Made>& earlier,
                 const Signature& signature, const std::string& name)
      : RandomShapes(r, o, earlier, signature, name) {}

  jit::Function make() {
    declare();
    left_ = o_.statements;
    if (wide(30)) {
      left_ = 1 + static_cast<int>(r_.below(12));
      begin_short();
    }
    while (left_ > 0) statement(o_.depth);
    out_.valid() ? end_short() : finish();
    return BuilderAccess::finish(b_);
  }
  uint64_t cost() const { return (cost_ + 500) * (again_ != 0 ? kMostAgain : 1); }

 private:
  void declare() {
    base_ = b_.param(0);
    for (unsigned i = 0; i < signature_.params.size(); ++i) keep(b_.param(i));
    if (signature_.params.size() > 1 && signature_.params[1] == Type::kI32 && wide(80)) {
      deep_ = b_.declare(Type::kI32);
      b_.def(deep_, b_.param(1));
      limit_ = kCostLimit / kMostAgain;
    }
    if (o_.counts) {
      count_ = b_.declare(Type::kI64);
      above_ = b_.declare(Type::kI64);
      set_count(b_.i64(0));
    }
    int variables = o_.variables;
    if (wide(20)) variables = static_cast<int>(r_.below(4));
    for (int i = 0; i < variables; ++i) {
      Type t = r_.chance(8) ? Type::kRef : number_type();
      Variable x = b_.declare(t);
      variables_[slot(t)].push_back(x);
      if (t == Type::kRef) {
        b_.def(x, base_);
      } else if (r_.chance(80)) {
        b_.def(x, r_.chance(50) ? constant(t) : value(t, 1));
      }
    }
  }

  // Invariant: `above_` is `count_` + kAbove, whatever the count is and whichever code set both.
  static constexpr int64_t kAbove = 0x1'0000'0003;

  void set_count(Value n) {
    b_.def(count_, n);
    b_.def(above_, b_.binary(Opcode::kAdd, n, b_.i64(kAbove)));
  }
  Value apart() { return b_.binary(Opcode::kSub, b_.use(above_), b_.use(count_)); }

  void ask() {
    if (!counters_.empty() && r_.chance(70)) set_count(b_.known_count(r_.pick(counters_)));
    if (r_.chance(50)) keep(apart());
    if (r_.chance(50)) return;
    Variable x = b_.declare(Type::kI64);
    Block more = b_.create_block(), less = b_.create_block(), join = b_.create_block();
    auto limit = static_cast<int64_t>(r_.next() >> r_.below(64));
    b_.branch(b_.binary(Opcode::kGeU, b_.use(count_), b_.i64(limit)), more, less);
    for (Block b : {more, less}) {
      b_.seal(b);
      b_.switch_to(b);
      b_.def(x, b == more ? apart() : b_.i64(kAbove));
      b_.jump(join);
    }
    b_.seal(join);
    b_.switch_to(join);
    keep(b_.use(x));
  }

  void store() {
    using enum Opcode;
    Type t = number_type();
    Value v = value(t, 2);
    if (is_float(t)) v = number(v);
    Address at = address(2, true);
    Opcode op = kStore;
    if (is_int(t) && r_.chance(50)) op = pick_op({kStore8, kStore16});
    if (t == Type::kI64 && r_.chance(20)) op = kStore32;
    b_.store(op, v, at);
    if (odd(25)) store_again(op, t, at);
  }

  // Stores to the same address again, sometimes with something in between: the first store may be
  // dead.
  void store_again(Opcode op, Type t, const Address& at) {
    size_t kind = r_.below(100);
    if (kind < 20) probe();
    if (kind >= 20 && kind < 30) store();
    if (is_int(t) && kind >= 30 && kind < 50) op = pick_op({Opcode::kStore, Opcode::kStore8});
    b_.set_location(++location_);
    Value v = leaf(t);
    if (is_float(t)) v = number(v);
    b_.store(op, v, at);
  }

  // ---- Statements -------------------------------------------------------------------------------

  void statement(int depth) {
    --left_;
    cost_ += 30 * times_;
    b_.set_location(++location_);
    if (shape(depth)) return;
    size_t kind = r_.below(100);
    if (depth > 0 && kind < 12) return branch(depth);
    if (depth > 0 && kind < 22)
      return odd(15) ? knot(depth) : odd(50) ? wander(depth) : loop(depth);
    if (depth > 0 && kind < 26) return choose(depth);
    if (kind < 36) return store();
    if (kind < 44) return call();
    if (kind < 48) return swap();
    if (o_.counts && r_.chance(12)) return ask();
    if (kind < 50) return probe();
    if (kind < 51 && o_.traps) return trap_if();
    if (kind < 52 && o_.odd) return check(likely(value(Type::kI32, 2)));
    if (kind < 53 && o_.guards) return guard();
    if (kind < 55 && o_.hosts) return note();
    if (kind < 58 && o_.odd) return run_of_stores();
    if (kind < 61 && o_.odd) return neighbours();
    if (kind < 63 && o_.odd) return products();
    if (kind < 66 && o_.odd) return counted();
    assign();
  }

  void probe() {
    static const std::vector<ProbeKind> kinds = {ProbeKind::kValue,   ProbeKind::kLog,
                                                 ProbeKind::kCounter, ProbeKind::kHit,
                                                 ProbeKind::kGauge,   ProbeKind::kRange};
    ProbeKind kind = r_.pick(kinds);
    bool ints = kind == ProbeKind::kCounter || kind == ProbeKind::kRange;
    if (kind == ProbeKind::kHit && r_.chance(50)) return counters_.push_back(b_.probe(kind));
    Value v = leaf(ints ? (r_.chance(50) ? Type::kI32 : Type::kI64) : number_type());
    uint32_t tag = kind == ProbeKind::kLog ? static_cast<uint32_t>(r_.next()) : 0;
    uint32_t index = b_.probe(kind, v, tag);
    bool counts =
        kind == ProbeKind::kHit || kind == ProbeKind::kCounter || kind == ProbeKind::kGauge;
    if (counts) counters_.push_back(index);
  }

  void statements(int depth, size_t most) override {
    size_t scope = values_.size();
    for (size_t n = r_.below(most) + 1; n > 0 && left_ > 0; --n) statement(depth);
    values_.resize(scope);
  }

  // Swaps variables, which makes cycles of block parameters at joins and back edges.
  void swap() {
    const auto& xs = variables_[slot(number_type())];
    if (xs.size() < 2) return;
    Variable x = r_.pick(xs), y = r_.pick(xs);
    Value vx = b_.use(x), vy = b_.use(y);
    b_.def(x, vy);
    b_.def(y, vx);
  }

  void branch(int depth) {
    Block yes = b_.create_block(), no = b_.create_block(), join = b_.create_block();
    bool has_else = r_.chance(60);
    b_.branch(condition(2), yes, has_else ? no : join);
    b_.seal(yes);
    b_.seal(no);
    b_.switch_to(yes);
    statements(depth - 1, 4);
    if (o_.traps && odd(1)) {
      b_.trap(static_cast<TrapCode>(r_.below(8) + 1));
    } else if (r_.chance(4)) {
      finish();
    } else {
      b_.jump(join);
    }
    if (has_else) {
      b_.switch_to(no);
      statements(depth - 1, 4);
      b_.jump(join);
    }
    b_.seal(join);
    b_.switch_to(join);
  }

  void choose(int depth) {
    size_t count = r_.below(6) + 1;
    std::vector<Block> arms(count), cases;
    for (Block& a : arms) a = b_.create_block();
    bool wide = odd(40);  // runs of cases with one destination
    for (size_t n = r_.below(9); n > 0; --n) {
      cases.insert(cases.end(), wide ? 1 + r_.below(8) : 1, r_.pick(arms));
    }
    int32_t mask = wide ? 63 : 7;
    Value index = b_.binary(Opcode::kAnd, value(Type::kI32, 2), b_.i32(r_.chance(80) ? mask : -1));
    b_.switch_on(index, cases, arms[0]);
    Block join = b_.create_block();
    for (Block a : arms) {
      b_.seal(a);
      b_.switch_to(a);
      statements(depth - 1, 2);
      b_.jump(join);
    }
    b_.seal(join);
    b_.switch_to(join);
  }

  // A loop that counts its own Variable down from at most 7, with the test first or last, and maybe
  // with a second exit.
  void loop(int depth) {
    constexpr uint64_t kMostTrips = 7;
    Variable counter = b_.declare(Type::kI32);
    Value trips = r_.chance(50) ? b_.i32(static_cast<int32_t>(r_.below(kMostTrips + 1)))
                                : b_.binary(Opcode::kAnd, value(Type::kI32, 2), b_.i32(7));
    bool test_last = r_.chance(40);
    if (test_last) trips = b_.binary(Opcode::kOr, trips, b_.i32(1));
    b_.def(counter, trips);
    Block header = b_.create_block(), body = b_.create_block(), exit = b_.create_block();
    b_.jump(header);
    b_.switch_to(header);
    mark_loop();
    if (test_last) {
      b_.jump(body);
    } else {
      b_.branch(b_.use(counter), body, exit);
    }
    b_.seal(body);
    b_.switch_to(body);
    uint64_t outside = times_;
    size_t scope = values_.size();
    times_ *= kMostTrips;
    statements(depth - 1, 5);
    if (r_.chance(25)) {
      Block next = b_.create_block();
      b_.branch(condition(2), next, exit);
      b_.seal(next);
      b_.switch_to(next);
    }
    times_ = outside;
    values_.resize(scope);
    Value left = b_.binary(Opcode::kSub, b_.use(counter), b_.i32(1));
    b_.def(counter, left);
    if (test_last) {
      b_.branch(left, header, exit);
    } else {
      b_.jump(header);
    }
    b_.seal(header);
    b_.seal(exit);
    b_.switch_to(exit);
  }

  Value compared(Value x, Value y) {
    using enum Opcode;
    return b_.binary(pick_op({kEq, kNe, kNe, kLtS, kLtU, kGtS, kGtU, kLeS, kLeU, kGeS, kGeU}), x,
                     y);
  }

  // A loop whose index starts anywhere and moves by any step, past range checks, until a comparison
  // fails or its rounds are used up. It may also continue early.
  void wander(int depth) {
    using enum Opcode;
    Type t = r_.chance(70) ? Type::kI32 : Type::kI64;
    uint64_t rounds = most_rounds(), outside = times_;
    Variable index = b_.declare(t), fuel = b_.declare(Type::kI32);
    b_.def(index, r_.chance(60) ? constant(t) : value(t, 2));
    b_.def(fuel, b_.i32(static_cast<int32_t>(rounds)));
    Value limit = r_.chance(60) ? constant(t) : value(t, 1);
    Value step = r_.chance(80) ? b_.constant(t, jit::clip(t, r_.below(9) - 4)) : constant(t);
    Block header = b_.create_block(), body = b_.create_block(), exit = b_.create_block();
    b_.jump(header);
    b_.switch_to(header);
    mark_loop();
    b_.branch(compared(b_.use(index), limit), body, exit);
    b_.seal(body);
    b_.switch_to(body);
    size_t scope = values_.size();
    times_ *= rounds;
    spend(fuel, exit);
    if (r_.chance(80)) keep(b_.use(index));
    if (r_.chance(30))
      check(r_.chance(80) ? likely(b_.use(index)) : compared(b_.use(index), limit));
    statements(depth - 1, 4);
    auto go_on = [&] {
      Opcode op =
          r_.chance(75) ? kAdd : pick_op({kSub, kMul, kShl, kShrS, kShrU, kXor, kRotl, kOr});
      if (o_.traps && r_.chance(15)) op = pick_op({kAddTrap, kSubTrap});
      b_.def(index, b_.binary(op, b_.use(index), step));
    };
    if (r_.chance(25)) {
      go_on();
      Block next = b_.create_block();
      b_.branch(condition(2), header, next);
      b_.seal(next);
      b_.switch_to(next);
      statements(depth - 1, 2);
    }
    if (r_.chance(85)) go_on();
    times_ = outside;
    values_.resize(scope);
    if (r_.chance(30)) {
      b_.branch(compared(b_.use(index), limit), header, exit);
    } else {
      b_.jump(header);
    }
    b_.seal(header);
    b_.seal(exit);
    b_.switch_to(exit);
  }

  // A cycle of two blocks with two entrances.
  void knot(int depth) {
    uint64_t rounds = most_rounds(), outside = times_;
    Variable fuel = b_.declare(Type::kI32);
    b_.def(fuel, b_.i32(static_cast<int32_t>(rounds)));
    Block parts[] = {b_.create_block(), b_.create_block()}, exit = b_.create_block();
    b_.branch(condition(2), parts[0], parts[1]);
    times_ *= rounds;
    size_t scope = values_.size();
    for (int n : {0, 1}) {
      b_.switch_to(parts[n]);
      spend(fuel, exit);
      statements(depth - 1, 3);
      if (r_.chance(40)) {
        b_.branch(condition(2), parts[1 - n], exit);
      } else {
        b_.jump(parts[1 - n]);
      }
      values_.resize(scope);
    }
    times_ = outside;
    for (Block b : parts) b_.seal(b);
    b_.seal(exit);
    b_.switch_to(exit);
  }

  // Returns a condition that holds for most numbers and from which passes can learn something.
  Value likely(Value x) {
    using enum Opcode;
    Type t = b_.type_of(x);
    uint64_t least = t == Type::kI32 ? uint64_t{1} << 31 : uint64_t{1} << 63, near = r_.below(100);
    auto bits = [&](uint64_t n) { return b_.constant(t, jit::clip(t, n)); };
    switch (r_.below(5)) {
      case 0: return b_.binary(kNe, x, constant(t));
      case 1: return b_.binary(pick_op({kLtU, kLeU, kNe}), x, bits(~near));
      case 2: return b_.binary(pick_op({kLtS, kLeS}), x, bits(least - 1 - near));
      case 3: return b_.binary(pick_op({kGtS, kGeS}), x, bits(least + near));
      default: return b_.binary(pick_op({kGtU, kGeU, kNe}), x, bits(r_.below(3)));
    }
  }

  void check(Value holds) override {
    if (o_.guards && r_.chance(60)) {
      std::vector<Value> slots;
      while (r_.chance(70)) slots.push_back(leaf(number_type()));
      b_.frame_state(++location_, slots);
      return b_.guard(holds, static_cast<GuardReason>(r_.below(7)));
    }
    if (!o_.traps) return;
    Value fails = b_.unary(Opcode::kEqz, holds);
    b_.trap_if(fails, static_cast<TrapCode>(r_.below(8) + 1));
  }

  void call() {
    if (earlier_.empty()) return assign();
    size_t index = r_.below(earlier_.size());
    const Made& callee = earlier_[index];
    if (cost_ + times_ * callee.cost > limit_) return assign();
    cost_ += times_ * callee.cost;
    std::vector<Value> args{base_};
    for (size_t i = 1; i < callee.signature.params.size(); ++i) {
      args.push_back(value(callee.signature.params[i], 2));
    }
    MethodId m(static_cast<uint32_t>(index));
    Value result = b_.call(m, callee.signature, args, callee.name);
    if (!result.valid()) return;
    const auto& xs = variables_[slot(callee.signature.result)];
    if (!xs.empty() && r_.chance(80)) b_.def(r_.pick(xs), result);
    keep(result);
  }

  void note() {
    const auto& hosts = corpus_hosts();  // the last of them writes to memory
    const HostFunction& host = odd(40) ? hosts.back() : hosts[r_.below(hosts.size() - 1)];
    std::string name = host.name;
    if (name == "step" || name == "many") return assign();
    if (name == "raise_if" && (!o_.traps || r_.chance(80))) return assign();
    std::vector<Value> args;
    for (Type t : host.signature.params) args.push_back(value(t, 2));
    bool raises = name == "raise_if";
    if (raises) {  // trap code kHost, or none
      Value rare = b_.binary(Opcode::kEq, args[0], b_.i32(3));
      args[0] = b_.select(rare, b_.i32(static_cast<int32_t>(TrapCode::kHost)), b_.i32(0));
    }
    Value result = b_.call_host(host, args, raises ? kCallMayTrap : 0);
    if (result.valid()) keep(result);
  }

  void trap_if() {
    Value rare = b_.binary(Opcode::kEq, value(Type::kI32, 2), b_.i32(INT32_MIN));
    b_.trap_if(rare, static_cast<TrapCode>(r_.below(8) + 1));
  }

  void guard() {
    std::vector<Value> slots;
    while (r_.chance(70)) slots.push_back(leaf(number_type()));
    Value rare = b_.binary(Opcode::kNe, value(Type::kI32, 2), b_.i32(65535));
    b_.frame_state(++location_, slots);
    b_.guard(rare, static_cast<GuardReason>(r_.below(7)));
  }

  // Returns a hash of all variables, so that a wrong value anywhere is seen.
  void finish() {
    if (signature_.result == Type::kNone) return b_.ret();
    if (signature_.result == Type::kRef) return b_.ret(leaf(Type::kRef));
    Value sum = b_.i64(1);
    for (Type t : kTypes) {
      for (Variable x : variables_[slot(t)]) {
        Value v = b_.use(x);
        if (is_float(t)) {
          Type bits = t == Type::kF32 ? Type::kI32 : Type::kI64;
          v = b_.convert(Opcode::kBitcast, bits, number(v));
        }
        if (!is_wide(t)) v = b_.convert(Opcode::kExtendU, Type::kI64, v);
        sum = b_.binary(Opcode::kAdd, b_.binary(Opcode::kMul, sum, b_.i64(31)), v);
      }
    }
    if (o_.odd) {  // a difference in the upper half shows in any result type
      for (int64_t by : {32, 20}) {
        sum = b_.binary(Opcode::kXor, sum, b_.binary(Opcode::kShrU, sum, b_.i64(by)));
      }
      if (is_float(signature_.result)) sum = b_.binary(Opcode::kAnd, sum, b_.i64(0xFFFFF));
    }
    switch (signature_.result) {
      case Type::kI64: return b_.ret(sum);
      case Type::kI32: return b_.ret(b_.convert(Opcode::kWrap, Type::kI32, sum));
      default: return b_.ret(b_.convert(Opcode::kConvertS, signature_.result, sum));
    }
  }

  std::vector<uint32_t> counters_;  // probes whose counts the program may read
  Variable count_, above_;
  int left_ = 0;
};

// Returns a module whose functions call earlier ones; the last function is the one to run.
inline jit::Module random_module(uint64_t seed, const RandomOptions& options = {}) {
  Random r(seed);
  jit::Module m;
  std::vector<RandomFunction::Made> made;
  constexpr Type kTypes[] = {Type::kI32, Type::kI64, Type::kF32, Type::kF64};
  for (int n = 0; n < options.functions; ++n) {
    Signature s{{Type::kRef}, r.chance(5) ? Type::kNone : kTypes[r.below(4)]};
    if (options.odd && r.chance(8)) s.result = Type::kRef;
    size_t most = r.chance(25) ? 20 : 6;
    if (options.odd && r.chance(1)) most = 400;
    for (size_t p = r.below(most); p > 0; --p) {
      s.params.push_back(options.odd && r.chance(10) ? Type::kRef : kTypes[r.below(4)]);
    }
    if (options.wide && n > 0 && r.chance(50)) s = made[r.below(made.size())].signature;
    std::string name = "f" + std::to_string(n);
    RandomFunction f(r, options, made, s, name);
    m.functions.push_back(f.make());
    made.push_back({s, name, f.cost()});
  }
  return m;
}

}  // namespace uptier::test
