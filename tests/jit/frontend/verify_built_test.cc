// The verifier of built functions checks less than the full verifier, and must give the same
// verdict.
#include "jit/frontend/verify_built.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "jit/frontend/builder_access.h"
#include "jit/frontend/verify.h"
#include "tests/support/random_ir.h"

namespace uptier::test::verify_built_test {
namespace {

constexpr Type kTypes[] = {Type::kI32, Type::kI64, Type::kF32, Type::kF64, Type::kRef};

// A host that is wrong now and then, in ways that the builder accepts: operands of the wrong type,
// values from blocks that do not dominate, blocks that are not filled, guards without a state.
class CarelessHost {
 public:
  explicit CarelessHost(uint64_t seed) : r_(seed), careless_(r_.chance(50) ? 3 : 0) {}

  void describe(FunctionBuilder& b) {
    for (unsigned i = 0; i < b.signature().params.size(); ++i) keep(b, b.param(i));
    for (int left = 12; b.current().valid(); --left) {
      for (size_t n = r_.below(8); n > 0; --n) operate(b);
      end_block(b, left > 0);
      go_on(b);
    }
  }

 private:
  bool careless() { return r_.chance(careless_); }
  void keep(FunctionBuilder& b, Value v) {
    if (v.valid()) values_.push_back({v, b.type_of(v), b.current()});
  }
  Type any_type() { return kTypes[r_.below(std::size(kTypes))]; }

  // Returns a value of the type from this block or the entry; or, if careless, any value.
  Value value(FunctionBuilder& b, Type t) {
    bool any = careless(), elsewhere = careless();
    for (int tries = 0; tries < 8; ++tries) {
      const Known& k = values_[r_.below(values_.size())];
      bool here = k.block == b.current() || k.block == Block(0) || elsewhere;
      if (here && (any || k.type == t)) return k.value;
    }
    Value v = b.constant(t, careless() && t == Type::kI32 ? UINT64_MAX : 1);
    keep(b, v);
    return v;
  }
  Opcode opcode(std::initializer_list<Shape> shapes, Type t) {
    for (;;) {
      auto op = static_cast<Opcode>(r_.below(kOpcodeCount));
      bool right = std::ranges::find(shapes, info(op).shape) != shapes.end();
      if (right && ((info(op).types & jit::mask_of(t)) != 0 || careless())) return op;
    }
  }
  Address address(FunctionBuilder& b) {
    Address a{.base = value(b, Type::kRef), .offset = 8, .flags = kMemTraps};
    if (r_.chance(50)) a.index = value(b, r_.chance(50) ? Type::kI32 : Type::kI64);
    if (careless()) a.flags = static_cast<uint8_t>(r_.next());
    return a;
  }

  void operate(FunctionBuilder& b) {
    Type t = any_type(), number = r_.chance(50) ? Type::kI32 : Type::kF64;
    switch (r_.below(10)) {
      case 0: return keep(b, b.unary(opcode({Shape::kUnary}, number), value(b, number)));
      case 1:
      case 2: {
        Opcode op = opcode({Shape::kBinary, Shape::kCompare}, number);
        return keep(b, b.binary(op, value(b, number), value(b, number)));
      }
      case 3: return keep(b, b.convert(Opcode::kExtendS, Type::kI64, value(b, Type::kI32)));
      case 4: return keep(b, b.select(value(b, Type::kI32), value(b, t), value(b, t)));
      case 5: return keep(b, b.load(opcode({Shape::kLoad}, t), t, address(b)));
      case 6: return b.store(opcode({Shape::kStore}, t), value(b, t), address(b));
      case 7: return call(b);
      case 8: return guard(b);
      default: {
        auto trap = careless() ? static_cast<TrapCode>(200) : TrapCode::kUnreachable;
        return b.trap_if(value(b, Type::kI32), trap);
      }
    }
  }
  void call(FunctionBuilder& b) {
    std::vector<Value> args = {value(b, Type::kI32)};
    if (careless()) args.push_back(args[0]);
    if (r_.chance(50)) return keep(b, b.call(MethodId(3), {{Type::kI32}, Type::kI64}, args));
    Value to = value(b, Type::kRef);
    keep(b, b.call_indirect(to, {{Type::kI32}, Type::kI32}, args, careless() ? 0x80 : 0));
  }
  void guard(FunctionBuilder& b) {
    Value c = value(b, Type::kI32);
    if (!careless()) b.frame_state(7, {{c}});
    if (careless()) b.call_host({"h", nullptr, {}}, {});
    b.guard(c, careless() ? static_cast<GuardReason>(77) : GuardReason::kType);
  }

  Block open_block(FunctionBuilder& b) {
    if (!open_.empty() && r_.chance(50)) return open_[r_.below(open_.size())];
    open_.push_back(b.create_block());
    return open_.back();
  }
  void end_block(FunctionBuilder& b, bool more) {
    if (!more || r_.chance(20)) {
      if (careless()) return b.ret();
      return r_.chance(20) ? b.trap(TrapCode::kUnreachable) : b.ret(value(b, Type::kI32));
    }
    Value c = value(b, Type::kI32);
    Block one = open_block(b), other = open_block(b);
    switch (r_.below(3)) {
      case 0: return b.jump(one);
      case 1: return b.branch(c, one, other);
      default: return b.switch_on(c, {{one, other}}, one);
    }
  }
  void go_on(FunctionBuilder& b) {
    if (open_.empty() || careless()) return;
    size_t n = r_.below(open_.size());
    Block next = open_[n];
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(n));
    b.seal(next);
    b.switch_to(next);
  }

  struct Known {
    Value value;
    Type type;
    Block block;
  };
  Random r_;
  unsigned careless_;  // percent
  std::vector<Known> values_;
  std::vector<Block> open_;
};

TEST(VerifyBuilt, says_what_the_whole_verifier_says_of_careless_hosts) {
  constexpr uint64_t kSeeds = 20000;
  uint64_t right = 0, wrong = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FunctionBuilder b({{Type::kI32, Type::kRef}, Type::kI32}, "f");
    CarelessHost(seed).describe(b);
    ASSERT_TRUE(b.status().ok()) << b.status().error().message;
    jit::Function f = BuilderAccess::finish(b);
    Status whole = jit::verify(f), quick = jit::verify_built(f);
    ++(whole.ok() ? right : wrong);
    ASSERT_EQ(quick.ok(), whole.ok()) << "seed " << seed << ": " << whole.error().message;
    if (!whole.ok()) { ASSERT_EQ(quick.error().message, whole.error().message) << "seed " << seed; }
  }
  EXPECT_GT(right, kSeeds / 3);
  EXPECT_GT(wrong, kSeeds / 10);
}

TEST(VerifyBuilt, passes_what_is_right) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    jit::Module m = random_module(seed, {.guards = seed % 2 == 0, .odd = seed % 3 == 0});
    for (const jit::Function& f : m.functions) {
      Status s = jit::verify_built(f);
      ASSERT_TRUE(s.ok()) << s.error().message;
    }
  }
}

// The builder does not vouch for a function that it did not make.
TEST(VerifyBuilt, an_adopted_function_is_verified_whole) {
  FunctionBuilder b({{}, Type::kI32}, "f");
  b.ret(b.i32(1));
  jit::Function f = BuilderAccess::finish(b);
  f.cfg_hash ^= 1;
  FunctionBuilder other({{}, Type::kI32}, "f");
  BuilderAccess::adopt(other, f);
  Result<jit::Function> r = BuilderAccess::finish_verified(other);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().message, "@f: cfg_hash does not fit the blocks");
}

}  // namespace
}  // namespace uptier::test::verify_built_test
