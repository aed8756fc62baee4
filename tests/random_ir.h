// random_ir.h: well-typed programs that end, from a seed, for comparing executors with each other.
//
//   a program is a pure function of (seed, options); so is what it computes
//   loops count down from at most 7, calls go to earlier functions only, and the estimated number
//   of steps of a call is bounded, so that every run ends within a few hundred thousand
//   instructions memory accesses stay in the scratch page, or (rarely, and marked kMemTraps) leave
//   it by less than two pages, where it faults no bit of a NaN is ever seen: floats that become
//   ints, go to memory or lend their sign are tested with x == x first
//
// Every function takes the scratch page's address first. Values live in Variables (some of them
// never assigned) and, beside those, directly over branches and loops, so that both ways of keeping
// a value are under pressure.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "jit/ir/build.h"
#include "jit/ir/module.h"
#include "jit/ir/semantics.h"
#include "tests/ir_corpus.h"

namespace uptier::test {

struct RandomOptions {
  int functions = 3;
  int statements = 40;  // in each function, nested ones included
  int variables = 16;   // in each function
  int depth = 3;        // of nested loops, branches and switches
  bool traps = true;    // operations may trap
  bool hosts = true;    // host functions of the corpus are called
  bool guards = false;  // guards, of which some fail
};

// splitmix64
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  uint64_t state_;
};

// Returns bits of a type, often at its edges.
inline uint64_t random_bits(Type t, Random& r) {
  if (t == Type::kF32 || t == Type::kF64) {
    static const std::vector<double> plain = {0.0,  -0.0, 1.0,   -1.0, 0.5,  1.5,  -2.5,
                                              1e10, 3e-5, 1e300, 127,  -128, 65536};
    double v = r.chance(70) ? r.pick(plain) : static_cast<double>(r.below(2000)) / 8 - 100;
    if (r.chance(15)) return jit::clip(t, r.next());
    if (t == Type::kF64) return std::bit_cast<uint64_t>(v);
    return std::bit_cast<uint32_t>(static_cast<float>(v > 1e38 ? 3e38 : v));
  }
  static const std::vector<int64_t> edges = {
      0,   1,   -1,  2,   7,     8,         31,        32,        63,       64,
      127, 128, 255, 256, 65535, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  uint64_t v = r.chance(60) ? static_cast<uint64_t>(r.pick(edges)) : r.next() >> r.below(64);
  return jit::clip(t, r.chance(20) ? ~v : v);
}

inline std::vector<uint64_t> random_arguments(const Signature& s, const Scratch& scratch,
                                              Random& r) {
  std::vector<uint64_t> out;
  for (Type t : s.params) out.push_back(t == Type::kRef ? scratch.base() : random_bits(t, r));
  return out;
}

// Makes one function.
class RandomFunction {
 public:
  struct Made {
    Signature signature;
    std::string name;
    uint64_t cost = 0;  // an upper bound of the steps of a call
  };

  RandomFunction(Random& r, const RandomOptions& o, const std::vector<Made>& earlier,
                 Signature signature, const std::string& name)
      : r_(r), o_(o), earlier_(earlier), b_(signature, name), signature_(signature) {}

  jit::Function make() {
    declare();
    left_ = o_.statements;
    while (left_ > 0) statement(o_.depth);
    finish();
    return BuilderAccess::finish(b_);
  }
  uint64_t cost() const { return cost_ + 500; }

 private:
  static constexpr uint64_t kCostLimit = 200'000;
  static constexpr Type kTypes[] = {Type::kI32, Type::kI64, Type::kF32, Type::kF64};

  Type number_type() { return kTypes[r_.below(4)]; }
  size_t slot(Type t) const { return static_cast<size_t>(t); }

  void declare() {
    base_ = b_.param(0);
    for (unsigned i = 0; i < signature_.params.size(); ++i) keep(b_.param(i));
    for (int i = 0; i < o_.variables; ++i) {
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

  // Remembers a value for direct use; scopes forget what they remembered when they end.
  Value keep(Value v) {
    values_.push_back(v);
    return v;
  }

  Value constant(Type t) { return b_.constant(t, random_bits(t, r_)); }

  // ---- Expressions ------------------------------------------------------------------------------

  Value leaf(Type t) {
    const auto& variables = variables_[slot(t)];
    if (!variables.empty() && r_.chance(60)) return b_.use(r_.pick(variables));
    for (int tries = 0; tries < 6 && !values_.empty(); ++tries) {
      Value v = r_.pick(values_);
      if (b_.type_of(v) == t) return v;
    }
    return t == Type::kRef ? base_ : constant(t);
  }

  Value value(Type t, int depth) {
    if (depth == 0 || r_.chance(15)) return leaf(t);
    Value v = t == Type::kRef ? pointer(depth) : is_int(t) ? integer(t, depth) : floating(t, depth);
    return r_.chance(30) ? keep(v) : v;
  }

  // The scratch page's address plus 0..1023.
  Value pointer(int depth) {
    if (r_.chance(30)) return b_.select(condition(depth - 1), leaf(Type::kRef), leaf(Type::kRef));
    Value offset = b_.binary(Opcode::kAnd, value(Type::kI64, depth - 1), b_.i64(1023));
    Value at = b_.binary(Opcode::kAdd, b_.convert(Opcode::kBitcast, Type::kI64, base_), offset);
    return b_.convert(Opcode::kBitcast, Type::kRef, at);
  }

  Opcode pick_op(std::initializer_list<Opcode> from) { return from.begin()[r_.below(from.size())]; }

  Value integer(Type t, int depth) {
    switch (r_.below(10)) {
      case 0: return integer_unary(t, depth);
      case 1: return division(t, depth);
      case 2: return to_integer(t, depth);
      case 3: return load(t, depth);
      case 4: return b_.select(condition(depth - 1), value(t, depth - 1), value(t, depth - 1));
      case 5:
        if (t == Type::kI32) return condition(depth);
        [[fallthrough]];
      default: return integer_binary(t, depth);
    }
  }

  Value integer_unary(Type t, int depth) {
    using enum Opcode;
    if (t == Type::kI64 && r_.chance(20)) return b_.unary(kSext32, value(t, depth - 1));
    return b_.unary(pick_op({kClz, kCtz, kPopcnt, kSext8, kSext16}), value(t, depth - 1));
  }

  Value integer_binary(Type t, int depth) {
    using enum Opcode;
    Value x = value(t, depth - 1);
    Value y = r_.chance(30) ? constant(t) : value(t, depth - 1);
    if (o_.traps && r_.chance(1)) return b_.binary(pick_op({kAddTrap, kSubTrap, kMulTrap}), x, y);
    return b_.binary(pick_op({kAdd, kAdd, kSub, kMul, kAnd, kOr, kXor, kShl, kShrS, kShrU, kRotl,
                              kRotr, kMulHighS, kMulHighU}),
                     x, y);
  }

  // Mostly by something that is not 0 and not -1.
  Value division(Type t, int depth) {
    using enum Opcode;
    Value x = value(t, depth - 1), y;
    if (o_.traps && r_.chance(2)) {
      y = value(t, depth - 1);
    } else if (r_.chance(40)) {
      static const std::vector<int64_t> divisors = {
          1,     2,         3,  7,   8,           10,        -3,        1000,
          65536, INT32_MIN, -1, 641, -1000000007, INT64_MIN, INT64_MAX, 6700417};
      y = b_.constant(t, jit::clip(t, static_cast<uint64_t>(r_.pick(divisors))));
    } else {
      y = b_.binary(kAnd, value(t, depth - 1), b_.constant(t, 0xff));
      y = b_.binary(kOr, y, b_.constant(t, 1));
    }
    return b_.binary(pick_op({kDivS, kDivU, kRemS, kRemU}), x, y);
  }

  Value to_integer(Type t, int depth) {
    using enum Opcode;
    Type same = t == Type::kI32 ? Type::kF32 : Type::kF64;
    switch (r_.below(4)) {
      case 0: return b_.convert(kBitcast, t, number(value(same, depth - 1)));
      case 1: {
        Type from = r_.chance(50) ? Type::kF32 : Type::kF64;
        bool trapping = o_.traps && r_.chance(5);
        Opcode op = trapping ? pick_op({kTruncS, kTruncU}) : pick_op({kTruncSatS, kTruncSatU});
        return b_.convert(op, t, value(from, depth - 1));
      }
      default:
        if (t == Type::kI32) return b_.convert(kWrap, t, value(Type::kI64, depth - 1));
        return b_.convert(pick_op({kExtendS, kExtendU}), t, value(Type::kI32, depth - 1));
    }
  }

  // An i32 that is 0 or 1, or any.
  Value condition(int depth) {
    using enum Opcode;
    if (depth <= 0) return leaf(Type::kI32);
    Type t = r_.chance(6) ? Type::kRef : number_type();
    Value x = value(t, depth - 1);
    if (t == Type::kRef) {
      if (r_.chance(30)) return b_.unary(kEqz, x);
      return b_.binary(pick_op({kEq, kNe}), x, value(t, depth - 1));
    }
    Value y = r_.chance(30) ? constant(t) : value(t, depth - 1);
    if (is_float(t)) return b_.binary(pick_op({kFEq, kFNe, kFLt, kFGt, kFLe, kFGe}), x, y);
    if (r_.chance(10)) return b_.unary(kEqz, x);
    if (r_.chance(10)) {
      return b_.binary(pick_op({kAddOverflows, kSubOverflows, kMulOverflows}), x, y);
    }
    return b_.binary(pick_op({kEq, kNe, kLtS, kLtU, kGtS, kGtU, kLeS, kLeU, kGeS, kGeU}), x, y);
  }

  // `x`, or 0.25 when it is a NaN.
  Value number(Value x) {
    Type t = b_.type_of(x);
    Value quarter = t == Type::kF32 ? b_.f32(0.25f) : b_.f64(0.25);
    return b_.select(b_.binary(Opcode::kFEq, x, x), x, quarter);
  }

  Value floating(Type t, int depth) {
    using enum Opcode;
    Type other = t == Type::kF32 ? Type::kF64 : Type::kF32;
    Value x = value(t, depth - 1);
    switch (r_.below(10)) {
      case 0: return b_.unary(pick_op({kFAbs, kFNeg, kFSqrt}), x);
      case 1: return b_.unary(pick_op({kFCeil, kFFloor, kFTrunc, kFNearest}), x);
      case 2: return b_.binary(pick_op({kFMin, kFMax}), x, value(t, depth - 1));
      case 3: return b_.binary(kFCopysign, x, number(value(t, depth - 1)));
      case 4: return b_.select(condition(depth - 1), x, value(t, depth - 1));
      case 5: return load(t, depth);
      case 6: return b_.convert(t == Type::kF32 ? kDemote : kPromote, t, value(other, depth - 1));
      case 7: {
        Value from = value(r_.chance(50) ? Type::kI32 : Type::kI64, depth - 1);
        if (r_.chance(75)) return b_.convert(pick_op({kConvertS, kConvertU}), t, from);
        Type same = t == Type::kF32 ? Type::kI32 : Type::kI64;
        return b_.convert(kBitcast, t, value(same, depth - 1));
      }
      default: return b_.binary(pick_op({kFAdd, kFSub, kFMul, kFDiv}), x, value(t, depth - 1));
    }
  }

  // ---- Memory -----------------------------------------------------------------------------------

  // base (0..1023) + index (0..1023) + offset (0..1999) + 8 bytes: inside of the page.
  Address address(int depth) {
    Address at;
    if (o_.traps && r_.chance(10)) return difference(depth);
    at.base = r_.chance(50) ? base_ : value(Type::kRef, depth - 1);
    if (r_.chance(20)) at.base = b_.convert(Opcode::kBitcast, Type::kI64, at.base);
    at.offset = r_.chance(30) ? 0 : static_cast<uint32_t>(r_.below(2000));
    if (r_.chance(60)) {
      Type t = r_.chance(70) ? Type::kI32 : Type::kI64;
      bool far = o_.traps && r_.chance(1);
      Value mask = b_.constant(t, far ? 4095 : 1023);
      at.index = b_.binary(Opcode::kAnd, value(t, depth - 1), mask);
      if (far) at.flags = kMemTraps;
    }
    if (r_.chance(50)) at.flags |= kMemTraps;
    return at;
  }

  // base + (1024..2047 - 1..1024): inside of the page, too, and rarely in the fence before it.
  Address difference(int depth) {
    bool far = r_.chance(2);
    Value v = b_.binary(Opcode::kAnd, value(Type::kI32, depth - 1), b_.i32(far ? 2047 : 1023));
    if (!far) v = b_.binary(Opcode::kOr, v, b_.i32(1024));
    Value less = b_.binary(Opcode::kAdd, v, b_.i32(-1 - static_cast<int32_t>(r_.below(1024))));
    return {.base = base_, .index = less, .flags = kMemTraps | kMemFenced};
  }

  Value load(Type t, int depth) {
    using enum Opcode;
    Address at = address(depth);
    if (is_float(t) || r_.chance(40)) return b_.load(kLoad, t, at);
    if (t == Type::kI64 && r_.chance(40)) return b_.load(pick_op({kLoad32S, kLoad32U}), t, at);
    return b_.load(pick_op({kLoad8S, kLoad8U, kLoad16S, kLoad16U}), t, at);
  }

  void store() {
    using enum Opcode;
    Type t = number_type();
    Value v = value(t, 2);
    if (is_float(t)) v = number(v);
    Address at = address(2);
    Opcode op = kStore;
    if (is_int(t) && r_.chance(50)) op = pick_op({kStore8, kStore16});
    if (t == Type::kI64 && r_.chance(20)) op = kStore32;
    b_.store(op, v, at);
  }

  // ---- Statements -------------------------------------------------------------------------------

  void statement(int depth) {
    --left_;
    cost_ += 30 * times_;
    b_.set_location(++location_);
    size_t kind = r_.below(100);
    if (depth > 0 && kind < 12) return branch(depth);
    if (depth > 0 && kind < 22) return loop(depth);
    if (depth > 0 && kind < 26) return choose(depth);
    if (kind < 36) return store();
    if (kind < 44) return call();
    if (kind < 48) return swap();
    if (kind < 50) return probe();
    if (kind < 51 && o_.traps) return trap_if();
    if (kind < 53 && o_.guards) return guard();
    if (kind < 55 && o_.hosts) return note();
    assign();
  }

  void probe() {
    static const std::vector<ProbeKind> kinds = {ProbeKind::kValue,   ProbeKind::kLog,
                                                 ProbeKind::kCounter, ProbeKind::kHit,
                                                 ProbeKind::kGauge,   ProbeKind::kRange};
    ProbeKind kind = r_.pick(kinds);
    bool ints = kind == ProbeKind::kCounter || kind == ProbeKind::kRange;
    if (kind == ProbeKind::kHit && r_.chance(50)) return b_.probe(kind), void();
    Value v = leaf(ints ? (r_.chance(50) ? Type::kI32 : Type::kI64) : number_type());
    uint32_t tag = kind == ProbeKind::kLog ? static_cast<uint32_t>(r_.next()) : 0;
    b_.probe(kind, v, tag);
  }

  void statements(int depth, size_t most) {
    size_t scope = values_.size();
    for (size_t n = r_.below(most) + 1; n > 0 && left_ > 0; --n) statement(depth);
    values_.resize(scope);
  }

  void assign() {
    Type t = r_.chance(5) ? Type::kRef : number_type();
    if (variables_[slot(t)].empty()) return;
    Value v = value(t, 3);
    b_.def(r_.pick(variables_[slot(t)]), v);
  }

  // Makes cycles of block parameters at joins and back edges.
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
    if (r_.chance(4)) {
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
    for (size_t n = r_.below(9); n > 0; --n) cases.push_back(r_.pick(arms));
    Value index = b_.binary(Opcode::kAnd, value(Type::kI32, 2), b_.i32(r_.chance(80) ? 7 : -1));
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

  // Counts a Variable of its own down from at most 7, with the test first or last, and maybe a
  // second way out.
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

  void mark_loop() {
    std::vector<Variable> slots;
    while (r_.chance(50)) {
      const auto& xs = variables_[slot(number_type())];
      if (!xs.empty()) slots.push_back(r_.pick(xs));
    }
    if (r_.chance(95)) b_.loop_header(++location_, slots);
  }

  void call() {
    if (earlier_.empty()) return assign();
    size_t index = r_.below(earlier_.size());
    const Made& callee = earlier_[index];
    if (cost_ + times_ * callee.cost > kCostLimit) return assign();
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
    const HostFunction& host = r_.pick(corpus_hosts());
    std::string name = host.name;
    if (name == "step" || name == "many") return assign();
    if (name == "raise_if" && (!o_.traps || r_.chance(80))) return assign();
    std::vector<Value> args;
    for (Type t : host.signature.params) args.push_back(value(t, 2));
    bool raises = name == "raise_if";
    if (raises) {  // code kHost or none
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

  // Returns a mixture of all variables, so that a wrong value anywhere shows.
  void finish() {
    if (signature_.result == Type::kNone) return b_.ret();
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
    switch (signature_.result) {
      case Type::kI64: return b_.ret(sum);
      case Type::kI32: return b_.ret(b_.convert(Opcode::kWrap, Type::kI32, sum));
      default: return b_.ret(b_.convert(Opcode::kConvertS, signature_.result, sum));
    }
  }

  Random& r_;
  const RandomOptions& o_;
  const std::vector<Made>& earlier_;
  FunctionBuilder b_;
  Signature signature_;
  Value base_;
  std::vector<Variable> variables_[6];  // by type
  std::vector<Value> values_;           // that dominate the current place
  int left_ = 0;
  uint64_t times_ = 1;  // the current place may run so often in a call
  uint64_t cost_ = 0;
  uint32_t location_ = 0;
};

// Returns a module whose functions call earlier ones; the last is the one to run.
inline jit::Module random_module(uint64_t seed, const RandomOptions& options = {}) {
  Random r(seed);
  jit::Module m;
  std::vector<RandomFunction::Made> made;
  constexpr Type kTypes[] = {Type::kI32, Type::kI64, Type::kF32, Type::kF64};
  for (int n = 0; n < options.functions; ++n) {
    Signature s{{Type::kRef}, r.chance(5) ? Type::kNone : kTypes[r.below(4)]};
    size_t most = r.chance(25) ? 20 : 6;
    for (size_t p = r.below(most); p > 0; --p) s.params.push_back(kTypes[r.below(4)]);
    std::string name = "f" + std::to_string(n);
    RandomFunction f(r, options, made, s, name);
    m.functions.push_back(f.make());
    made.push_back({s, name, f.cost()});
  }
  return m;
}

}  // namespace uptier::test
