// Descriptions that reuse the tables of earlier ones.
#include "jit/frontend/spare_build.h"

#include <gtest/gtest.h>

#include "jit/frontend/builder_impl.h"
#include "jit/ir/print.h"
#include "tests/support/random_ir.h"

namespace uptier::test::spare_build_test {
namespace {

// A host that describes a function of `size` statements, with Variables, joins and loops.
class Host {
 public:
  Host(FunctionBuilder& b, uint64_t seed) : b_(b), r_(seed) {
    for (size_t n = 1 + r_.below(20); n > 0; --n) all_.push_back(b.declare(Type::kI64));
  }

  void describe(size_t size) {
    for (; size > 0; --size) {
      switch (r_.below(4)) {
        case 0: loop(); break;
        case 1: diamond(); break;
        default: compute();
      }
    }
    b_.ret(use());
  }

 private:
  Variable any() { return all_[r_.below(all_.size())]; }
  Value use() { return b_.use(any()); }
  void compute() { b_.def(any(), b_.binary(Opcode::kAdd, use(), use())); }
  Value condition() { return b_.binary(Opcode::kLtS, use(), use()); }

  void diamond() {
    Block yes = b_.create_block(), no = b_.create_block(), join = b_.create_block();
    b_.branch(condition(), yes, no);
    for (Block arm : {yes, no}) {
      b_.seal(arm);
      b_.switch_to(arm);
      compute();
      b_.jump(join);
    }
    b_.seal(join);
    b_.switch_to(join);
  }

  void loop() {
    Block header = b_.create_block(), exit = b_.create_block();
    b_.jump(header);
    b_.switch_to(header);
    b_.loop_header(7, {});
    compute();
    b_.branch(condition(), header, exit);
    b_.seal(header);
    b_.seal(exit);
    b_.switch_to(exit);
  }

  FunctionBuilder& b_;
  Random r_;
  std::vector<Variable> all_;
};

const Signature kSignature{{}, Type::kI64};

std::string text_of(FunctionBuilder& b, uint64_t seed, size_t size, jit::Function* made) {
  Host(b, seed).describe(size);
  Result<jit::Function> f = BuilderAccess::finish_verified(b);
  if (!f) return f.error().message;
  std::string text = jit::to_text(*f);
  *made = std::move(*f);
  return text;
}

TEST(SpareBuild, descriptions_are_those_of_fresh_builders) {
  jit::SpareBuild spare;
  Random r(1);
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    size_t size = r.below(seed % 10 == 0 ? 400 : 20);
    jit::Function f;
    FunctionBuilder fresh(kSignature, "f");
    std::string expected = text_of(fresh, seed, size, &f);
    FunctionBuilder b = spare.begin(kSignature, "f");
    ASSERT_EQ(text_of(b, seed, size, &f), expected) << "seed " << seed;
    spare.keep(b);
    spare.keep(std::move(f));
  }
}

TEST(SpareBuild, misuse_goes_with_its_builder) {
  jit::SpareBuild spare;
  jit::Function f;
  FunctionBuilder wrong = spare.begin(kSignature, "f");
  wrong.switch_to(Block(7));
  ASSERT_FALSE(BuilderAccess::finish_verified(wrong).ok());
  spare.keep(wrong);
  FunctionBuilder fresh(kSignature, "f"), b = spare.begin(kSignature, "f");
  EXPECT_EQ(text_of(b, 3, 9, &f), text_of(fresh, 3, 9, &f));
}

// Describes one block with `constants` constants; returns how many instructions the builder had
// room for before.
size_t room_for(jit::SpareBuild& spare, size_t constants) {
  FunctionBuilder b = spare.begin(kSignature, "f");
  size_t room = BuilderAccess::impl(b).f.insts.capacity();
  for (size_t n = 0; n < constants; ++n) b.i64(1);
  b.ret(b.i64(2));
  jit::Function f = BuilderAccess::finish(b);
  spare.keep(b);
  spare.keep(std::move(f));
  return room;
}

TEST(SpareBuild, room_is_handed_on_unless_it_is_large) {
  constexpr size_t kLarge = jit::SpareBuild::kMostBytes / sizeof(jit::Inst);
  jit::SpareBuild spare;
  EXPECT_LT(room_for(spare, 5000), 1000u);
  EXPECT_GE(room_for(spare, kLarge + 1), 5000u);
  EXPECT_LT(room_for(spare, 1), 1000u);
}

}  // namespace
}  // namespace uptier::test::spare_build_test
